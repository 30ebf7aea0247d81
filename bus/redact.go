package bus

import (
	"errors"
	"net/url"
	"strings"
)

// Redact hides users, passwords and tokens in a list of server URLs, separated
// by commas, so that it can be shown and logged.
func Redact(list string) string {
	urls := strings.Split(list, ",")
	for i, raw := range urls {
		u, err := url.Parse(strings.TrimSpace(raw))
		switch {
		case err != nil:
			urls[i] = "(not a URL)"
		case u.User != nil:
			u.User = url.User("xxxxx")
			urls[i] = u.String()
		}
	}
	return strings.Join(urls, ",")
}

// RedactError is an error of connecting without the URL that could not be read.
func RedactError(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
