package policy

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"culm/events"
)

func origin(p string) events.Matcher { return events.Matcher{Kind: HTTPOrigin, Pattern: p} }

func TestHTTPOrigin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, resource string
		match             bool
	}{
		{"https://example.com", "https://example.com", true},
		{"https://example.com", "https://example.com/a?b#c", true},
		{"https://example.com/", "https://example.com?x=http://evil.com", true},
		{"https://example.com", "HTTPS://EXAMPLE.com:443/a", true},
		{"https://example.com:443", "https://example.com/a", true},
		{"http://example.com", "http://example.com:80/", true},
		{"https://example.com", "http://example.com/", false},
		{"https://example.com", "https://example.com:444/", false},
		{"https://example.com", "https://example.com.evil.com/", false},
		{"https://example.com", "https://evil.com/https://example.com", false},
		{"https://example.com", "https://sub.example.com/", false},
		{"https://example.com", "https://example.com@evil.com/", false},
		{"https://example.com", "https://user:pw@example.com/", false},
		{"https://example.com", `https://example.com\@evil.com/`, false},
		{"https://example.com", `https:\\example.com/`, false},
		{"https://example.com", "https://example.com./", false},
		{"https://example.com", "https://example.com:/", false},
		{"https://example.com", "https://example.com:0443/", false},
		{"https://example.com", "https://example.com:99999/", false},
		{"https://example.com", "https://example%2ecom/", false},
		{"https://example.com", "https://exаmple.com/", false}, // a Cyrillic letter
		{"https://example.com", "https://example.com /", false},
		{"https://example.com", " https://example.com/", false},
		{"https://example.com", "https://exam\tple.com/", false},
		{"https://example.com", "https:example.com", false},
		{"https://example.com", "//example.com", false},
		{"https://example.com", "example.com", false},
		{"https://example.com", "ftp://example.com", false},
		{"https://xn--bcher-kva.example", "https://XN--bcher-kva.example/x", true},
		{"https://xn--bcher-kva.example", "https://bücher.example/x", false},
		{"http://[::1]:8080", "http://[::1]:8080/x", true},
		{"http://[::1]", "http://[0:0:0:0:0:0:0:1]:80/x", true},
		{"http://[2001:DB8::a]", "http://[2001:db8:0::000a]/", true},
		{"http://[::ffff:127.0.0.1]", "http://[::ffff:7f00:1]/", true},
		{"http://[::1]", "http://[::1%25eth0]/", false},
		{"http://[::1]", "http://[::2]/", false},
		{"http://[::1]", "http://::1/", false},
		{"http://127.0.0.1", "http://127.0.0.1/x", true},
		{"http://127.0.0.1", "http://127.1/x", false},
		{"http://127.0.0.1", "http://0x7f.0.0.1/x", false},
		{"http://127.0.0.1", "http://2130706433/", false},
		{"http://127.0.0.1", "http://127.0.0.01/", false},
		{"http://localhost:8080", "http://localhost:8080/x", true},
		{"https://example.com/a", "https://example.com/a", false},
		{"https://*.example.com", "https://a.example.com", false},
		{"https://", "https://", false},
	} {
		r := Request{Type: HTTPRequest, Resource: c.resource}
		if got := Match(origin(c.pattern), r); got != c.match {
			t.Errorf("%q covers %q: %v", c.pattern, c.resource, got)
		}
		if c.match && !Touches(origin(c.pattern), r) {
			t.Errorf("%q covers %q but does not touch it", c.pattern, c.resource)
		}
	}
}

func TestHTTPOrigin_RestrictsWidely(t *testing.T) {
	t.Parallel()
	for resource, touches := range map[string]bool{
		"https://evil.com/":                    true,
		"https://user@evil.com/":               true,
		"https://evil.com./":                   true,
		"https://evil.com.:443/":               true,
		"https://evil.com:/":                   true,
		`https:\\evil.com\x`:                   true,
		" https://evil.com/":                   true,
		"https://ev\til.com/":                  true,
		"https:///evil.com":                    true,
		"https:evil.com":                       true,
		"//evil.com/x":                         true,
		"evil.com":                             true,
		"evil.com/x":                           true,
		"https://%65vil.com/":                  true, // whose host this is cannot be told
		"https://0x7f.1/":                      true,
		"https://evil.com@good.com/":           false,
		"https://good.com/evil.com":            false,
		"https://good.com/?u=https://evil.com": false,
		"http://evil.com/":                     false, // another origin
		"https://evil.com:444/":                false,
		"good.com":                             false,
		"WebSearch":                            false,
		"mailto:a@b":                           false,
	} {
		if got := Touches(origin("https://evil.com"), Request{Type: HTTPRequest, Resource: resource}); got != touches {
			t.Errorf("%q: %v", resource, got)
		}
	}
}

func TestParseIPv6_AgreesWithTheStandardLibrary(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "::", "::1", "1::", "1::8", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
		"1::2::3", ":::", ":1", "1:", "12345::", "g::", "::1.2.3.4", "::1.2.3", "1.2.3.4::", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4",
		"::ffff:1.2.3.4", "1:2:3:4::5:6:7:8", "+1::", "-1::", "::01.2.3.4", "0001::", "00001::", "1.2.3.4", "::1%x",
	} {
		got, ok := parseIPv6(s)
		want, err := netip.ParseAddr(s)
		valid := err == nil && want.Is6() && want.Zone() == ""
		if ok != valid {
			t.Errorf("%q: %v, want %v", s, ok, valid)
			continue
		}
		if b := want.As16; ok {
			for i, g := range got {
				if a := b(); uint16(a[2*i])<<8|uint16(a[2*i+1]) != g {
					t.Errorf("%q: %x", s, got)
				}
			}
		}
	}
}

// What the strict reader accepts, net/url reads the same.
func FuzzHTTPOrigin(f *testing.F) {
	for _, s := range []string{"https://example.com:443/a", "http://[::1]:80/", "http://a@b", "http://1.2.3.4", "//x", `http:\\x`, "http://x#@y", "http://x?@y"} {
		f.Add(s, "https://example.com")
	}
	f.Fuzz(func(t *testing.T, resource, pattern string) {
		r := Request{Type: HTTPRequest, Resource: resource}
		touches := Touches(origin(pattern), r)
		if Match(origin(pattern), r) && !touches {
			t.Fatalf("%q covers %q but does not touch it", pattern, resource)
		}
		got, _, ok := parseOrigin(resource)
		if !ok {
			return
		}
		u, err := url.Parse(resource)
		if err != nil {
			// Faults behind the authority do not change whom it names.
			if u, err = url.Parse(strings.SplitN(strings.SplitN(resource, "?", 2)[0], "#", 2)[0]); err != nil {
				return
			}
		}
		port := u.Port()
		if port == "" {
			port = defaultPort(u.Scheme)
		}
		host := strings.ToLower(u.Hostname())
		if a, err := netip.ParseAddr(host); err == nil && a.Is6() {
			g, _ := parseIPv6(host)
			b := a.As16()
			for i := range g {
				if g[i] != uint16(b[2*i])<<8|uint16(b[2*i+1]) {
					t.Fatalf("%q: %x", resource, g)
				}
			}
			host = got[strings.Index(got, "[")+1 : strings.Index(got, "]")]
			host = "[" + host + "]"
		}
		if want := u.Scheme + "://" + host + ":" + port; u.User != nil || got != want {
			t.Fatalf("%q: %q, want %q", resource, got, want)
		}
	})
}
