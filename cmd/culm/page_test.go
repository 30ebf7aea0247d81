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
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || strings.Contains(r.URL.String(), token) {
			t.Errorf("the token is sent: %s %v", r.URL, r.Header)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
	}))
	defer page.Close()
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
