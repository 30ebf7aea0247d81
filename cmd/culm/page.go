package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"culm/internal/show"
	"culm/projection/web"
)

type page struct {
	HTTP string `name:"http" env:"CULM_HTTP" default:"127.0.0.1:8280" placeholder:"ADDR" help:"Address of the page, as the engine was given it (${default})."`
	Data string `env:"CULM_DATA" default:"./data" placeholder:"DIR" help:"Data folder of the engine, where it keeps its token (${default})."`
	File string `placeholder:"FILE" help:"File of the token, if it is another: cmd/projector keeps it beside its database, as views.db.page-token."`
}

// Help is shown by culm page --help.
func (page) Help() string {
	return `Prints where to open the page, with the token that lets you decide there: whoever has this address can act in your name. It is read from the engine's data folder, so this works where the engine runs, as the user it runs as. An engine with --http-tokens keeps no token; then yours goes behind #token= in the address. The page is asked over HTTP, so --nats, --creds, --prefix and --actor change nothing here.`
}

// Run looks whether the page is there, and takes the token, before it says so.
// The token goes to standard output and to that page, and nowhere else.
func (c *page) Run(ctx context.Context, a *app) error {
	address, err := net.ResolveTCPAddr("tcp", c.HTTP)
	if err != nil || address.Port == 0 {
		return usage(fmt.Errorf("--http takes HOST:PORT, not %q", c.HTTP), nil)
	}
	bare := web.PageURL(address, "")
	if err := a.pageThere(ctx, bare); err != nil {
		return err
	}
	token, file, err := c.token()
	if err != nil {
		return fmt.Errorf("the page is at %s, but not its token: %w", bare, err)
	}
	if token != "" {
		if err := c.tokenFits(ctx, a, bare, token, file); err != nil {
			return err
		}
	}
	if a.JSON {
		return a.printJSON(some(data{"url": web.PageURL(address, token)}))
	}
	if token == "" {
		fmt.Fprintf(a.errOut, "culm: there is no token in %s, so the page shows all and decides nothing; --data names the engine's data folder, --file the token of a cmd/projector\n", show.Clean(file))
	}
	_, err = fmt.Fprintln(a.out, web.PageURL(address, token))
	return err
}

// pageThere asks for the page, without any token.
func (a *app) pageThere(ctx context.Context, url string) error {
	r, err := a.get(ctx, url, "")
	if err != nil {
		return fmt.Errorf("no page answers at %s: is an engine running, with another --http or with --http off?", url)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
		return fmt.Errorf("what answers at %s has no page (%s); an engine with --no-projector has none", url, show.Clean(r.Status))
	}
	return nil
}

// tokenFits asks the page something harmless with the token: two engines of one
// machine have two, and a wrong one would decide nothing.
func (c *page) tokenFits(ctx context.Context, a *app, bare, token, file string) error {
	r, err := a.get(ctx, bare+"api/v1/status", token)
	if err != nil {
		return fmt.Errorf("page at %s: %w", bare, err)
	}
	defer r.Body.Close()
	switch r.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("the token in %s is not that of the page at %s: --data names the data folder of its engine, --http the address of the engine of this folder, --file the token of a cmd/projector", show.Clean(file), bare)
	}
	return fmt.Errorf("the page at %s does not say whether it takes the token in %s (%s)", bare, show.Clean(file), show.Clean(r.Status))
}

// get asks within the timeout, with a token unless it is "", which follows no
// answer to another place.
func (a *app) get(ctx context.Context, url, token string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Timeout: a.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return client.Do(q)
}

// token reads the token that the engine keeps, "" if it keeps none in its
// folder.
func (c *page) token() (token, file string, err error) {
	file = c.File
	if file == "" {
		file = filepath.Join(c.Data, "page-token")
		if _, err := os.Stat(c.Data); errors.Is(err, fs.ErrNotExist) {
			return "", file, fmt.Errorf("there is no folder %s; --data names the engine's data folder, --file the token of a cmd/projector", show.Clean(c.Data))
		}
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && c.File == "" {
		return "", file, nil
	}
	if err != nil {
		return "", file, err
	}
	return strings.TrimSpace(string(b)), file, nil
}
