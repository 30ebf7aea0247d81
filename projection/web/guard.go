package web

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// policy is the page's content security policy: nothing but files of this
// server, no markup from strings, in nobody's frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// secure sets what every answer carries.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-store")
}

// guard lets requests through that name this server as it is known, and that no
// foreign page has sent: a name that was made to point here (DNS rebinding)
// fails at Host, a foreign page's request at Origin or Sec-Fetch-Site.
type guard struct {
	hosts []string // besides loopback: lower-case names without port
}

func (g guard) check(r *http.Request) error {
	if !g.allows(r.Host) {
		return refuse(codeForbidden, "the host %.100q is not on the list of this server; add it with --http-hosts", r.Host)
	}
	if origin := r.Header.Get("Origin"); origin != "" && !sameOrigin(origin, r.Host) {
		return refuse(codeForbidden, "requests of other sites are not answered")
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
		return nil
	default: // same-site: another port of the same machine is another program
		if r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && isPage(r.URL.Path) {
			return nil // a link to the page; it shows nothing to where it was clicked
		}
		return refuse(codeForbidden, "requests of other sites are not answered")
	}
}

func isPage(path string) bool { return path == "/" }

func (g guard) allows(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "localhost" || slices.Contains(g.hosts, name) {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.IsLoopback()
}

// sameOrigin: a proxy may have taken TLS off, so the scheme is not compared.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, host)
}
