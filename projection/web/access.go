package web

import (
	"fmt"
	"net"
	"os"
	"os/user"
	"strings"
)

// Access is who may do what over HTTP, as flags say it.
type Access struct {
	Hosts      []string // names besides loopback's
	TokensFile string   // lines "actor token"; "" keeps one token
	KeepIn     string   // file of the token that is kept
	Actor      string   // of the kept token; "" is the user of the process
}

// Apply sets the options for a listener on the address. A token that is kept is
// told to nobody: whoever may read its file finds it there.
func (a Access) Apply(o *Options, address string) (err error) {
	o.Hosts, o.TokenForReads = a.Hosts, !Loopback(address)
	if a.TokensFile != "" {
		o.Tokens, err = readTokensFile(a.TokensFile)
		return err
	}
	token, err := KeptToken(a.KeepIn)
	if err != nil {
		return err
	}
	o.Tokens = &Tokens{}
	if err := o.Tokens.Add(a.actor(), token); err != nil {
		return fmt.Errorf("token of the page in %s: %w; without the file a new one is made", a.KeepIn, err)
	}
	return nil
}

// CheckTokens says what is wrong with a file of lines "actor token".
func CheckTokens(name string) error {
	_, err := readTokensFile(name)
	return err
}

func readTokensFile(name string) (*Tokens, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	defer f.Close()
	t, err := ReadTokens(f)
	if err != nil {
		return nil, fmt.Errorf("tokens in %s: %w", name, err)
	}
	return t, nil
}

func (a Access) actor() string {
	if a.Actor != "" {
		return a.Actor
	}
	if u, err := user.Current(); err == nil && validActor(u.Username) {
		return u.Username
	}
	return "page"
}

// Loopback says that nobody but this machine reaches the address.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
