package logtest_test

import (
	"testing"

	"culm/events"
	"culm/internal/logtest"
)

func TestMem(t *testing.T) {
	t.Parallel()
	logtest.Run(t, func(*testing.T) events.Log { return events.NewMem() })
}
