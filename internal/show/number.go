package show

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Count spells a number of things: "1 event", "1,204 events". The plural is
// the singular and an s.
func Count[N ~int | ~uint32 | ~uint64](n N, singular string) string {
	if n == 1 {
		return "1 " + singular
	}
	return Thousands(uint64(n)) + " " + singular + "s"
}

// Thousands spells a number with separators.
func Thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Age spells how long ago t was, in its largest unit: "just now", "5 minutes
// ago". A time after now is "just now": clocks differ.
func Age(t, now time.Time) string {
	d := now.Sub(t)
	switch {
	case d < 2*time.Second:
		return "just now"
	case d < time.Minute:
		return Count(int(d/time.Second), "second") + " ago"
	case d < time.Hour:
		return Count(int(d/time.Minute), "minute") + " ago"
	case d < 48*time.Hour:
		return Count(int(d/time.Hour), "hour") + " ago"
	default:
		return Count(int(d/(24*time.Hour)), "day") + " ago"
	}
}

// Short spells a duration in its largest unit for a narrow column: "5s", "12m",
// "3h", "2d". Less than nothing is "0s": clocks differ.
func Short(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// When spells a time in the given place with its age.
func When(t, now time.Time, place *time.Location) string {
	if t.IsZero() {
		return "never"
	}
	return fmt.Sprintf("%s (%s)", t.In(place).Format("2006-01-02 15:04:05"), Age(t, now))
}

// Elapsed spells a duration given in milliseconds: "85 ms", "1.2 s", "2m5s".
func Elapsed(ms uint64) string {
	switch {
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	case ms < 60_000:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(ms)/1000), ".0") + " s"
	default:
		return (time.Duration(ms/1000) * time.Second).String()
	}
}
