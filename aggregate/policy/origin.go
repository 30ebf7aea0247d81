package policy

import (
	"fmt"
	"strconv"
	"strings"
)

// parseOrigin reads scheme, host and port of an http or https URL into one
// normal form, "scheme://host:port", the port always written. rest is what
// follows. It refuses every URL that two readers could understand differently
// (docs/permissions.md#http-origin): user names, backslashes, white space,
// percent signs or letters beyond ASCII in the host, a trailing dot, and IPv4
// addresses that are not four plain decimal numbers. The standard library's
// URL parser is more lenient, which is right for a client and wrong here.
func parseOrigin(raw string) (origin, rest string, ok bool) {
	if len(raw) > MaxResource || strings.ContainsFunc(raw, func(c rune) bool { return c == '\\' || c == ' ' || isControl(c) }) {
		return "", "", false
	}
	scheme, after, found := strings.Cut(raw, "://")
	scheme = strings.ToLower(scheme)
	if !found || defaultPort(scheme) == "" {
		return "", "", false
	}
	authority := after
	if i := strings.IndexAny(after, "/?#"); i >= 0 {
		authority, rest = after[:i], after[i:]
	}
	host, port, ok := splitHostPort(authority)
	if !ok {
		return "", "", false
	}
	if port == "" {
		port = defaultPort(scheme)
	}
	host, ok = normalHost(host)
	return scheme + "://" + host + ":" + port, rest, ok
}

func defaultPort(scheme string) string {
	switch scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	}
	return ""
}

// splitHostPort splits an authority without a user name. A port, if there is
// one, is a plain number.
func splitHostPort(authority string) (host, port string, ok bool) {
	end := strings.LastIndexByte(authority, ']') + 1
	host = authority
	if i := strings.IndexByte(authority[end:], ':'); i >= 0 {
		host, port = authority[:end+i], authority[end+i+1:]
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || port != strconv.FormatUint(n, 10) {
			return "", "", false
		}
	}
	return host, port, true
}

// normalHost is the host in lower case; an IPv6 address in one spelling.
func normalHost(host string) (string, bool) {
	if inner, found := strings.CutPrefix(host, "["); found {
		inner, found = strings.CutSuffix(inner, "]")
		g, ok := parseIPv6(inner)
		return fmt.Sprintf("[%x:%x:%x:%x:%x:%x:%x:%x]", g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7]), found && ok
	}
	host = strings.ToLower(host)
	if host == "" || len(host) > 253 {
		return "", false
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", false
		}
	}
	// A host whose last label is a number is an address to every browser.
	if last := labels[len(labels)-1]; last[0] >= '0' && last[0] <= '9' {
		_, ok := parseIPv4(host)
		return host, ok
	}
	return host, true
}

// parseIPv4 reads four decimal numbers without leading zeros.
func parseIPv4(s string) ([2]uint16, bool) {
	var b [4]uint64
	parts := strings.Split(s, ".")
	if len(parts) != 4 {
		return [2]uint16{}, false
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 8)
		if err != nil || p != strconv.FormatUint(n, 10) {
			return [2]uint16{}, false
		}
		b[i] = n
	}
	return [2]uint16{uint16(b[0]<<8 | b[1]), uint16(b[2]<<8 | b[3])}, true
}

// parseIPv6 reads an IPv6 address without a zone into its eight groups.
func parseIPv6(s string) (out [8]uint16, ok bool) {
	head, tail, gap := strings.Cut(s, "::")
	left, ok := ipv6Groups(head, !gap)
	if !ok {
		return out, false
	}
	right, ok := ipv6Groups(tail, true)
	switch {
	case !ok:
		return out, false
	case gap && len(left)+len(right) > 7: // "::" stands for at least one group
		return out, false
	case !gap && len(left) != 8:
		return out, false
	}
	copy(out[:], left)
	copy(out[8-len(right):], right)
	return out, true
}

// ipv6Groups reads groups with colons between; the last may be an IPv4 address
// if they end the address.
func ipv6Groups(s string, ends bool) ([]uint16, bool) {
	if s == "" {
		return nil, true
	}
	var out []uint16
	parts := strings.Split(s, ":")
	for i, p := range parts {
		if strings.Contains(p, ".") {
			v4, ok := parseIPv4(p)
			if !ok || !ends || i != len(parts)-1 {
				return nil, false
			}
			out = append(out, v4[:]...)
			continue
		}
		n, err := strconv.ParseUint(p, 16, 16)
		if err != nil || len(p) > 4 {
			return nil, false
		}
		out = append(out, uint16(n))
	}
	return out, len(out) <= 8
}

// checkOriginPattern says what is wrong with the pattern of an http_origin, or "".
func checkOriginPattern(p string) string {
	_, rest, ok := parseOrigin(p)
	switch {
	case !ok:
		return "is no plain http or https origin, as https://example.com or http://[::1]:8080"
	case rest != "" && rest != "/":
		return "holds more than scheme, host and port"
	}
	return ""
}

// matchOrigin is the narrow reading of http_origin.
func matchOrigin(pattern, resource string) bool {
	want, rest, ok := parseOrigin(pattern)
	if !ok || rest != "" && rest != "/" {
		return false
	}
	got, _, ok := parseOrigin(resource)
	return ok && got == want
}

// touchesOrigin is the wide reading of http_origin: a URL is understood as
// leniently as any client would, one without a scheme has every scheme, and a
// URL whose host cannot be told could have this one.
func touchesOrigin(pattern, resource string) bool {
	want, _, ok := parseOrigin(pattern)
	if !ok {
		return true
	}
	s := strings.Map(func(c rune) rune {
		switch {
		case c == '\\':
			return '/'
		case isControl(c):
			return -1
		}
		return c
	}, strings.TrimSpace(resource))
	schemes := []string{"http", "https"}
	scheme, after, found := strings.Cut(s, ":")
	if scheme = strings.ToLower(scheme); found && defaultPort(scheme) != "" {
		schemes, s = []string{scheme}, after
	} else {
		found = strings.HasPrefix(s, "//")
	}
	s = strings.TrimLeft(s, "/")
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		s = s[:i]
	}
	s = s[strings.LastIndexByte(s, '@')+1:]
	s = strings.TrimSuffix(strings.TrimSuffix(s, ":"), ".")
	for _, scheme := range schemes {
		got, _, ok := parseOrigin(scheme + "://" + strings.Replace(s, ".:", ":", 1))
		if ok && got == want || !ok && found {
			return true
		}
	}
	return false
}
