package web

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"culm/aggregate"
	"culm/events"
)

func copyAll(to io.Writer, from io.Reader) (int64, error) { return io.Copy(to, from) }

func TestGuard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Hosts = []string{"Culm.Example", " "} })
	address := strings.TrimPrefix(w.http.URL, "http://")
	for name, c := range map[string]struct {
		edits []func(*http.Request)
		want  int
	}{
		"as it is":                              {nil, 200},
		"localhost":                             {[]func(*http.Request){host("localhost:8280")}, 200},
		"localhost with a final dot":            {[]func(*http.Request){host("LOCALHOST.:8280")}, 200},
		"another loopback address":              {[]func(*http.Request){host("127.8.9.1")}, 200},
		"IPv6 loopback":                         {[]func(*http.Request){host("[::1]:8280")}, 200},
		"a name on the list":                    {[]func(*http.Request){host("culm.example:443")}, 200},
		"a name that was made to point here":    {[]func(*http.Request){host("evil.example")}, 403},
		"one that ends like a good one":         {[]func(*http.Request){host("localhost.evil.example")}, 403},
		"an address of the network":             {[]func(*http.Request){host("192.168.1.4:8280")}, 403},
		"an address of all":                     {[]func(*http.Request){host("0.0.0.0:8280")}, 403},
		"its own origin":                        {[]func(*http.Request){header("Origin", "http://"+address)}, 200},
		"another site":                          {[]func(*http.Request){header("Origin", "http://evil.example")}, 403},
		"another port of this machine":          {[]func(*http.Request){header("Origin", "http://127.0.0.1:1")}, 403},
		"an origin that is hidden":              {[]func(*http.Request){header("Origin", "null")}, 403},
		"another site's request without origin": {[]func(*http.Request){header("Sec-Fetch-Site", "cross-site")}, 403},
		"a neighbour's request without origin":  {[]func(*http.Request){header("Sec-Fetch-Site", "same-site")}, 403},
		"typed into the address bar":            {[]func(*http.Request){header("Sec-Fetch-Site", "none")}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/api/v1/status", "/", "/app.js"} {
				if got := w.ask("GET", path, "", c.edits...); got.StatusCode != c.want {
					t.Errorf("%s answers %d, want %d: %.200s", path, got.StatusCode, c.want, got.body)
				}
			}
		})
	}
	link := []func(*http.Request){header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Mode", "navigate")}
	if got := w.ask("GET", "/", "", link...); got.StatusCode != 200 {
		t.Errorf("a link to the page answers %d", got.StatusCode)
	}
	if got := w.ask("GET", "/healthz", "", host("engine:8280")); got.StatusCode != 200 || got.body != "ok\n" {
		t.Errorf("health by any name answers %d %q", got.StatusCode, got.body)
	}
}

func TestEveryAnswerIsSecured(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, path := range []string{"/", "/app.js", "/api/v1/status", "/api/v1/none", "/nothing", "/healthz", "/metrics"} {
		got := w.ask("GET", path, "")
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got.Header.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got.Header.Get(name), want)
			}
		}
		if got.Header.Get("Content-Type") == "" {
			t.Errorf("%s has no content type", path)
		}
	}
	for _, bad := range []string{"unsafe-inline", "unsafe-eval", "*", "data:"} {
		if strings.Contains(policy, bad) {
			t.Errorf("the policy allows %s", bad)
		}
	}
}

func TestPage_nothingInlineAndNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	entries, err := static.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := static.ReadFile("static/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "<style", " style=", " onclick=", "http://", "https://"} {
			text := strings.ReplaceAll(string(b), "http://www.w3.org/2000/svg", "")
			if strings.Contains(text, bad) {
				t.Errorf("%s holds %q", e.Name(), bad)
			}
		}
		if strings.Contains(string(b), "<script") && !strings.Contains(string(b), `<script type="module" src=`) {
			t.Errorf("%s has a script of its own", e.Name())
		}
	}
	w := newWorld(t, nil)
	first := w.ask("GET", "/", "")
	if got := w.ask("GET", "/", "", header("If-None-Match", first.Header.Get("ETag"))); got.StatusCode != http.StatusNotModified || got.body != "" {
		t.Errorf("the same page again answers %d", got.StatusCode)
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.reply = aggregate.Reply{OK: true, Session: "s", Sequence: 4, Event: &aggregate.EventRef{Sequence: 4, Type: "message.submitted"}}
	got := w.ask("POST", "/api/v1/commands/s/message.submit", `{"content":"hi"}`, as(bobToken), header("Culm-Command-Id", "id 1"), // as over NATS
		header("Culm-Expected-Sequence", "3"))
	if got.StatusCode != 200 || !strings.Contains(got.body, `"sequence":4`) {
		t.Fatalf("%d %s", got.StatusCode, got.body)
	}
	r := w.commands[0]
	if r.Actor != "bob" || r.Session != "s" || r.Name != "message.submit" || r.ID != "id 1" || *r.Expected != 3 || string(r.Body) != `{"content":"hi"}` {
		t.Errorf("the rules were told %+v", r)
	}
	if got := w.ask("POST", "/api/v1/commands/s/run.resume", "", as(adaToken), header("Content-Type", "application/json")); got.StatusCode != 200 {
		t.Errorf("an empty body answers %d %s", got.StatusCode, got.body)
	}
	if r := w.commands[1]; r.Actor != "ada" || r.ID == "" || r.Expected != nil || string(r.Body) != "{}" {
		t.Errorf("the rules were told %+v", r)
	}
	w.reply = aggregate.Reply{Session: "s", Error: &aggregate.Error{Code: "already_decided", Message: "too late"}}
	if got := w.ask("POST", "/api/v1/commands/s/approval.decide", "{}", as(adaToken)); got.StatusCode != 409 || got.code() != "already_decided" {
		t.Errorf("a refusal answers %d %s", got.StatusCode, got.body)
	}
	w.err = errors.New("gone")
	if got := w.ask("POST", "/api/v1/commands/s/approval.decide", "{}", as(adaToken)); got.StatusCode != 503 || got.code() != "unavailable" || got.Header.Get("Retry-After") == "" {
		t.Errorf("no answer answers %d %s", got.StatusCode, got.body)
	}
}

func TestCommand_refusedBeforeTheRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const good = "/api/v1/commands/s/run.request"
	for name, c := range map[string]struct {
		path, body string
		edits      []func(*http.Request)
		code       string
		status     int
	}{
		"no token":             {good, "{}", nil, "unauthorized", 401},
		"a wrong token":        {good, "{}", []func(*http.Request){as("x" + adaToken)}, "unauthorized", 401},
		"part of a token":      {good, "{}", []func(*http.Request){as(adaToken[:10])}, "unauthorized", 401},
		"basic authorization":  {good, "{}", []func(*http.Request){header("Authorization", "Basic "+adaToken)}, "unauthorized", 401},
		"a foreign page":       {good, "{}", []func(*http.Request){as(adaToken), header("Origin", "http://evil.example")}, "forbidden", 403},
		"a form":               {good, "{}", []func(*http.Request){as(adaToken), header("Content-Type", "text/plain")}, "wrong_type", 415},
		"no object":            {good, "[]", []func(*http.Request){as(adaToken)}, "invalid_json", 400},
		"two objects":          {good, "{} {}", []func(*http.Request){as(adaToken)}, "invalid_json", 400},
		"equal keys":           {good, `{"a":1,"a":2}`, []func(*http.Request){as(adaToken)}, "invalid_json", 400},
		"invalid UTF-8":        {good, "{\"a\":\"\xff\"}", []func(*http.Request){as(adaToken)}, "invalid_json", 400},
		"a lone surrogate":     {good, `{"a":"\ud800"}`, []func(*http.Request){as(adaToken)}, "invalid_json", 400},
		"nested too deep":      {good, `{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}", []func(*http.Request){as(adaToken)}, "invalid_json", 400},
		"too large":            {good, `{"a":"` + strings.Repeat("x", MaxBody) + `"}`, []func(*http.Request){as(adaToken)}, "payload_too_large", 413},
		"a reserved session":   {"/api/v1/commands/_engine/run.request", "{}", []func(*http.Request){as(adaToken)}, "invalid_token", 400},
		"settings, no policy":  {"/api/v1/commands/_settings/run.request", "{}", []func(*http.Request){as(adaToken)}, "invalid_token", 400},
		"a session with a dot": {"/api/v1/commands/a.b/run.request", "{}", []func(*http.Request){as(adaToken)}, "invalid_token", 400},
		"no verb":              {"/api/v1/commands/s/run", "{}", []func(*http.Request){as(adaToken)}, "unknown_command", 404},
		"three words":          {"/api/v1/commands/s/run.a.b", "{}", []func(*http.Request){as(adaToken)}, "unknown_command", 404},
		"an id that is long":   {good, "{}", []func(*http.Request){as(adaToken), header("Culm-Command-Id", strings.Repeat("x", 129))}, "invalid_command", 400},
		"an id of other signs": {good, "{}", []func(*http.Request){as(adaToken), header("Culm-Command-Id", "\u00e4")}, "invalid_command", 400},
		"no id at all":         {good, "{}", []func(*http.Request){as(adaToken), header("Culm-Command-Id", "")}, "invalid_command", 400},
		"two ids":              {good, "{}", []func(*http.Request){as(adaToken), twice("Culm-Command-Id", "a", "b")}, "invalid_command", 400},
		"the id of the bus":    {good, "{}", []func(*http.Request){as(adaToken), header("Nats-Msg-Id", "x")}, "invalid_command", 400},
		"an empty sequence":    {good, "{}", []func(*http.Request){as(adaToken), header("Culm-Expected-Sequence", "")}, "invalid_command", 400},
		"two sequences":        {good, "{}", []func(*http.Request){as(adaToken), twice("Culm-Expected-Sequence", "3", "4")}, "invalid_command", 400},
		"a sequence of words":  {good, "{}", []func(*http.Request){as(adaToken), header("Culm-Expected-Sequence", "three")}, "invalid_command", 400},
	} {
		t.Run(name, func(t *testing.T) {
			if got := w.ask("POST", c.path, c.body, c.edits...); got.StatusCode != c.status || got.code() != c.code {
				t.Errorf("%d %.300s, want %d %s", got.StatusCode, got.body, c.status, c.code)
			}
		})
	}
	if got := w.ask("GET", good, "", as(adaToken)); got.StatusCode != 404 {
		t.Errorf("GET of a command answers %d", got.StatusCode)
	}
	if len(w.commands) != 0 {
		t.Errorf("the rules were told %v", w.commands)
	}
	if got := w.ask("POST", "/api/v1/commands/_settings/policy.set_mode", "{}", as(adaToken)); got.StatusCode != 200 {
		t.Errorf("policy of the installation answers %d %s", got.StatusCode, got.body)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"short": "ada 12345", "no actor": adaToken, "reserved": "_engine " + adaToken, "three words": "ada " + adaToken + " x",
		"the same for two": "ada " + adaToken + "\nbob " + adaToken, "not printable": "ada " + adaToken + "\u00e9",
	} {
		if _, err := ReadTokens(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %q is taken", name, text)
		}
	}
	file := t.TempDir() + "/deep/token"
	first, err := KeptToken(file)
	if err != nil || len(first) < minToken {
		t.Fatal(first, err)
	}
	if again, err := KeptToken(file); err != nil || again != first {
		t.Errorf("%q, then %q (%v)", first, again, err)
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("\x00\xff", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Access{KeepIn: file}).Apply(&Options{}, "127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a damaged token is refused without the name of its file: %v", err)
	}
	w := newWorld(t, func(o *Options) { o.TokenForReads = true })
	for name, edits := range map[string][]func(*http.Request){"without a token": nil, "with a wrong one": {as("x" + adaToken)}} {
		if got := w.ask("GET", "/api/v1/status", "", edits...); got.StatusCode != 401 || !strings.Contains(got.body, "culm page") {
			t.Errorf("%s %d %s", name, got.StatusCode, got.body)
		}
	}
	if got := w.ask("GET", "/api/v1/status", "", as(adaToken)); got.StatusCode != 200 || !strings.Contains(got.body, `"actor":"ada"`) {
		t.Errorf("with one %d %s", got.StatusCode, got.body)
	}
	if got := w.ask("GET", "/", ""); got.StatusCode != 200 {
		t.Errorf("the page itself %d", got.StatusCode)
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.ask("GET", "/api/v1/sessions/list?limit=5&text="+url.QueryEscape("a b")+"&min_sequence=s@3&min_sequence=t@4", "")
	w.ask("POST", "/api/v1/approvals/list", `{"status":"all"}`)
	want := []string{`sessions.list {"limit":5,"min_sequence":{"s":3,"t":4},"text":"a b"}`, `approvals.list {"status":"all"}`}
	if !slices.Equal(w.queries, want) {
		t.Errorf("asked %q, want %q", w.queries, want)
	}
	for path, status := range map[string]int{
		"/api/v1/sessions/list?limit=x": 400, "/api/v1/sessions/list?limit=1&limit=2": 400, "/api/v1/sessions/list?a=%zz": 400, "/api/v1/sessions/list?cursor=%ff": 400, "/api/v1/a.b/list": 404, "/api/v1/events/x/y/z": 404,
	} {
		if got := w.ask("GET", path, ""); got.StatusCode != status || got.code() == "" {
			t.Errorf("%s answers %d %s", path, got.StatusCode, got.body)
		}
	}
	for code, status := range map[string]int{"not_yet": 503, "invalid_command": 400, "session_not_found": 404, "unknown_command": 404, "unavailable": 503} {
		w.answer = `{"ok":false,"error":{"code":"` + code + `","message":"no"}}`
		if got := w.ask("GET", "/api/v1/x/y", ""); got.StatusCode != status || got.body != w.answer {
			t.Errorf("%s answers %d %s", code, got.StatusCode, got.body)
		}
	}
}

func TestWithoutViewsThereIsOnlyHealth(t *testing.T) {
	t.Parallel()
	down := errors.New("the disk is full")
	s, err := New(Options{Metrics: NewMetrics(nil), Healthy: func() error { return down }})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, nil)
	w.http.Config.Handler = s.Handler()
	for path, status := range map[string]int{"/": 404, "/api/v1/status": 404, "/app.js": 404, "/healthz": 503, "/readyz": 503, "/metrics": 200} {
		if got := w.ask("GET", path, ""); got.StatusCode != status {
			t.Errorf("%s answers %d %s", path, got.StatusCode, got.body)
		}
	}
	if _, err := New(Options{Query: w}); err == nil {
		t.Error("a page without a log is taken")
	}
	var _ events.Log = w.mem
}
