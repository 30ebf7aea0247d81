package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPageTellsTheAddressAndShowsTheTokenToNobody(t *testing.T) {
	const token = "a-token-of-more-than-24-characters"
	answers := func(takes string) *httptest.Server { // as a page with this token
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			given := r.Header.Get("Authorization")
			if strings.Contains(r.URL.String(), token) || given != "" && r.URL.Path != "/api/v1/status" {
				t.Errorf("the token is sent: %s %v", r.URL, r.Header)
			}
			switch {
			case r.URL.Path == "/":
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
			case takes == "":
				http.Redirect(w, r, "/", http.StatusFound)
			case given != "Bearer "+takes:
				w.WriteHeader(http.StatusUnauthorized)
			}
		}))
		t.Cleanup(s.Close)
		return s
	}
	page, another, moved := answers(token), answers("the-token-of-another-engine"), answers("")
	health := httptest.NewServer(http.NotFoundHandler())
	defer health.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	data := t.TempDir()
	file := filepath.Join(data, "page-token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
	for name, c := range map[string]struct {
		args     []string
		status   int
		out, err string
	}{
		"a page":         {[]string{"--http", at(page), "--data", data}, exitOK, page.URL + "/#token=" + token + "\n", ""},
		"of a projector": {[]string{"--http", at(page), "--file", file}, exitOK, page.URL + "/#token=" + token + "\n", ""},
		"JSON":           {[]string{"--http", at(page), "--data", data, "--json"}, exitOK, `{"url":"` + page.URL + "/#token=" + token + "\"}\n", ""},
		"another's":      {[]string{"--http", at(another), "--data", data}, exitFailed, "", "the token in " + file + " is not that of the page at " + another.URL + "/: --data names the data folder of its engine, --http the address of the engine of this folder, --file the token of a cmd/projector"},
		"moved":          {[]string{"--http", at(moved), "--data", data}, exitFailed, "", "does not say whether it takes the token"},
		"no folder":      {[]string{"--http", at(page), "--data", "/does/not/exist"}, exitFailed, "", "the page is at " + page.URL + "/, but not its token: there is no folder /does/not/exist; --data names the engine's data folder, --file "},
		"no token":       {[]string{"--http", at(page), "--data", t.TempDir()}, exitOK, page.URL + "/\n", "shows all and decides nothing"},
		"no such file":   {[]string{"--http", at(page), "--file", "/does/not/exist"}, exitFailed, "", "/does/not/exist"},
		"without views":  {[]string{"--http", at(health), "--data", data}, exitFailed, "", "has no page (404 Not Found)"},
		"nobody answers": {[]string{"--http", at(gone), "--data", data}, exitFailed, "", "no page answers at " + gone.URL},
		"no address":     {[]string{"--http", "off"}, exitUsage, "", `--http takes HOST:PORT, not "off"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := culm(t, nil, append([]string{"page"}, c.args...)...)
			if r.status != c.status || r.out != c.out || !strings.Contains(r.err, c.err) || (c.err == "") != (r.err == "") {
				t.Errorf("status %d, out %q, err %q", r.status, r.out, r.err)
			}
		})
	}
}
