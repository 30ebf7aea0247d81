package bus

import (
	"errors"
	"testing"
	"time"

	"culm/events"
)

func TestCheckDescriptors(t *testing.T) {
	open, limit, err := Descriptors()
	if err != nil {
		t.Fatal(err)
	}
	if open < 3 || limit < open {
		t.Errorf("Descriptors() = %d of %d", open, limit)
	}
	descriptors.Lock()
	saved := descriptors.limit
	descriptors.limit = descriptors.open + descriptorReserve
	descriptors.at = time.Now().Add(time.Hour)
	descriptors.Unlock()
	err = CheckDescriptors()
	descriptors.Lock()
	descriptors.limit, descriptors.at = saved, time.Time{}
	descriptors.Unlock()
	if !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("near the limit: %v, want ErrUnavailable", err)
	}
	if err := CheckDescriptors(); err != nil {
		t.Errorf("far from it: %v", err)
	}
}
