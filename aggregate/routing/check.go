package routing

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"culm/events"
)

// Bounds of a configuration.
const (
	MaxInstances = 256
	MaxModels    = 256 // of one instance
	MaxModelName = 256 // bytes
)

// efforts are the reasoning efforts that a configuration may name. What a
// session asks for is handed to its provider as it stands.
var efforts = []string{"minimal", "low", "medium", "high", "xhigh", "max"}

// Fault is one thing that is wrong with a configuration. Path is spelled like
// the configuration file: "providers[2].models[0]".
type Fault struct{ Path, Problem string }

// Check returns everything that is wrong with the configuration, in the order
// of the file; nothing where it can be used.
func (c Config) Check() []Fault {
	var out []Fault
	fault := func(path, format string, args ...any) {
		out = append(out, Fault{path, fmt.Sprintf(format, args...)})
	}
	if len(c.Instances) > MaxInstances {
		fault("providers", "holds %d instances, at most %d are allowed", len(c.Instances), MaxInstances)
		return out
	}
	seen, marked := map[string]bool{}, ""
	for i, in := range c.Instances {
		in.check(fmt.Sprintf("providers[%d]", i), fault)
		if in.ID != "" && seen[in.ID] {
			fault(fmt.Sprintf("providers[%d].id", i), "%.64q is the id of an earlier instance: ids are unique", in.ID)
		}
		seen[in.ID] = true
		if in.Default && marked != "" {
			fault(fmt.Sprintf("providers[%d].default", i), "is set, and so is that of %.64q: mark one instance at most", marked)
		}
		if in.Default && marked == "" {
			marked = in.ID
		}
	}
	if len(out) == 0 {
		c.checkDefaults(fault)
	}
	return out
}

type faults func(path, format string, args ...any)

func (i Instance) check(at string, fault faults) {
	switch {
	case !events.ValidToken(i.ID):
		fault(at+".id", "%.64q is no id: 1 to 64 letters, digits, - and _ are", i.ID)
	case KnownType(i.ID) && i.ID != i.Type:
		fault(at+".id", "%q is the name of a provider type and this instance has another: who asks for the type would get this one", i.ID)
	}
	if !KnownType(i.Type) {
		fault(at+".type", "%.64q is none of %s", i.Type, strings.Join(builtIn, ", "))
	}
	if len(i.Models) > MaxModels {
		fault(at+".models", "holds %d models, at most %d are allowed", len(i.Models), MaxModels)
		return
	}
	for k, m := range i.Models {
		switch problem := modelProblem(m); {
		case problem != "":
			fault(fmt.Sprintf("%s.models[%d]", at, k), "%s", problem)
		case slices.Index(i.Models, m) < k:
			fault(fmt.Sprintf("%s.models[%d]", at, k), "%.64q is listed twice", m)
		}
	}
	if i.ReasoningEffort != "" && !slices.Contains(efforts, i.ReasoningEffort) {
		fault(at+".reasoning_effort", "%.64q is none of %s", i.ReasoningEffort, strings.Join(efforts, ", "))
	}
}

// modelProblem says what is wrong with the name of a model, "" if nothing.
func modelProblem(m string) string {
	switch {
	case strings.TrimSpace(m) == "" || m == unknownModel:
		return fmt.Sprintf("%q names no model", m)
	case m != strings.TrimSpace(m):
		return "has white space at its ends"
	case len(m) > MaxModelName:
		return fmt.Sprintf("is %d bytes long, at most %d are allowed", len(m), MaxModelName)
	case !utf8.ValidString(m) || strings.ContainsFunc(m, unicode.IsControl):
		return "holds control characters or broken UTF-8"
	}
	return ""
}

// checkDefaults judges the roles: each resolves to one pair that belongs
// together, whatever the session names.
func (c Config) checkDefaults(fault faults) {
	for _, d := range []struct {
		role string
		ref  *events.Model
	}{{"chat", c.Defaults.Chat}, {RoleFast, c.Defaults.Fast}, {RoleBackground, c.Defaults.Background}, {RoleSummarization, c.Defaults.Summarization}} {
		at := "defaults." + d.role
		switch {
		case d.ref == nil:
		case strings.TrimSpace(d.ref.Provider) == "":
			fault(at+".provider", "is missing")
		case modelProblem(d.ref.Model) != "":
			fault(at+".model", "%s", modelProblem(d.ref.Model))
		case !c.Listed():
			fault(at, "names a provider and none are listed: list it under providers")
		default:
			if _, err := c.member(d.ref.Provider, d.ref.Model, c.Exists()); err != nil && err.Reason == ReasonModel {
				fault(at+".model", "%s", err.Message)
			} else if err != nil {
				fault(at+".provider", "%s", err.Message)
			}
		}
	}
}
