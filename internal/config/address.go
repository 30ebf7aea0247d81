package config

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// listenProblem says what is wrong with an address to listen on. An empty host
// is all of the machine's, port 0 a free one.
func listenProblem(v string) string {
	_, port, err := net.SplitHostPort(v)
	if err != nil {
		return "is no host:port"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "has no port from 0 to 65535"
	}
	return ""
}

// HTTPProblem says what is wrong with an address of the page, "" for nothing.
func HTTPProblem(v string) string {
	if strings.EqualFold(v, "off") {
		return ""
	}
	if _, _, err := net.SplitHostPort(v); err != nil {
		return "is neither host:port nor off"
	}
	return listenProblem(v)
}

var natsSchemes = []string{"nats", "tls", "ws", "wss"}

// NATSProblem says what is wrong with server URLs, separated by commas, without
// repeating them: they may hold a password.
func NATSProblem(v string) string {
	const what = "is no list of server URLs: nats://host:port, joined by commas, also tls://, ws:// and wss://"
	found := false
	for raw := range strings.SplitSeq(v, ",") {
		if raw = strings.TrimSpace(raw); raw == "" {
			continue // the client library passes over it, too
		}
		found = true
		if !strings.Contains(raw, "://") {
			raw = "nats://" + raw
		}
		u, err := url.Parse(raw)
		if err != nil || u.Hostname() == "" || !slices.Contains(natsSchemes, u.Scheme) {
			return what
		}
		if port := u.Port(); port != "" && listenProblem(":"+port) != "" {
			return "has a port that is none from 0 to 65535"
		}
	}
	return when(!found, what)
}
