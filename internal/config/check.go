package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"culm/aggregate/policy"
	"culm/aggregate/routing"
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// Check judges rules that did not come from a file; those of Parse pass it. The
// error is Errors without lines.
func (r Rules) Check() error {
	rd := &reader{file: "configuration", lines: map[string]int{}}
	if rd.checkRules(&r); len(rd.errs) > 0 {
		return rd.errs
	}
	return nil
}

// checkRules judges what was read as a whole. Each part has its own rules; here
// their findings get the lines of the file.
func (r *reader) checkRules(rules *Rules) {
	for _, f := range rules.Routing().Check() {
		r.failAtf(f.Path, "%s", f.Problem)
	}
	for i, p := range rules.Providers {
		r.checkProvider(fmt.Sprintf("providers[%d]", i), p)
	}
	err := rules.Permissions.Validate()
	if f, ok := errors.AsType[*policy.FieldError](err); ok {
		r.failAtf("permissions."+f.Field, "%s", f.Problem)
	} else if err != nil {
		r.failAtf("permissions", "%v", err)
	}
}

// checkProvider judges what only the file knows of an instance.
func (r *reader) checkProvider(at string, p Provider) {
	recorded := p.Type == routing.TypeRecorded
	if !recorded && routing.KnownType(p.Type) {
		r.forbid(at, "belongs to instances of type recorded", map[string]bool{"file": p.File != "", "pace": p.Pace != 0})
	}
	if recorded {
		r.forbid(at, "does not go with type recorded, which calls nobody", map[string]bool{"base_url": p.BaseURL != "", "api_key_env": p.APIKeyEnv != ""})
		if strings.TrimSpace(p.File) == "" {
			r.failAtf(at+".file", "is missing: an instance of type recorded names the recording that it plays")
		}
	}
	if p.APIKeyEnv != "" && !envName.MatchString(p.APIKeyEnv) {
		// The value is not repeated: it may be the key itself.
		r.failAtf(at+".api_key_env", "is no name of an environment variable; set the key in the environment and name the variable here")
	}
	if p.BaseURL != "" {
		if problem := urlProblem(p.BaseURL); problem != "" {
			r.failAtf(at+".base_url", "%s", problem)
		}
	}
}

func (r *reader) forbid(at, problem string, set map[string]bool) {
	for key, is := range set {
		if is {
			r.failAtf(at+"."+key, "%s", problem)
		}
	}
}

func urlProblem(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "is no URL that begins with http:// or https://"
	case u.User != nil:
		return "holds a user or a password; name the variable with the key in api_key_env"
	case u.RawQuery != "" || u.Fragment != "":
		return "has a query or a fragment; it is the address that paths are added to"
	}
	return ""
}
