package aggregate

import "strings"

// MaxCommandID is how long a command id may be, in bytes.
const MaxCommandID = 128

// ValidCommandID says whether id is 1 to MaxCommandID printable ASCII characters.
func ValidCommandID(id string) bool {
	if id == "" || len(id) > MaxCommandID {
		return false
	}
	for i := range len(id) {
		if id[i] < ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

const traceparentLen = 55 // of version 00

// CleanTraceparent returns the trace context as version 00 spells it, or "" for
// a malformed one: W3C Trace Context says to go on as if it were not there, and
// to hand a later version on as the one that is understood.
func CleanTraceparent(v string) string {
	if len(v) < traceparentLen || v[2] != '-' || v[35] != '-' || v[52] != '-' {
		return ""
	}
	version, trace, parent, flags := v[:2], v[3:35], v[36:52], v[53:traceparentLen]
	if !lowerHex(version) || !lowerHex(trace) || !lowerHex(parent) || !lowerHex(flags) || version == "ff" || zeros(trace) || zeros(parent) {
		return ""
	}
	switch {
	case len(v) == traceparentLen && version == "00":
		return v
	case version == "00", len(v) > traceparentLen && v[traceparentLen] != '-':
		return ""
	}
	return "00" + v[2:traceparentLen]
}

func lowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func zeros(s string) bool { return strings.Trim(s, "0") == "" }
