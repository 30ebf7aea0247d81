package routing

import "strings"

// Resolve finds the key of the live provider that name asks for, by the seven
// rules of docs/routing.md#key. It fails closed: the key is always live, of
// exactly the asked id or of the asked type, and never of a disabled instance.
// The error is an *Error of code provider_unavailable.
func Resolve(name string, c Config, live Live) (string, error) {
	key, err := resolve(name, c, live)
	if err != nil {
		return "", err // a nil *Error must not become a non-nil error
	}
	return key, nil
}

func resolve(name string, c Config, live Live) (string, *Error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return "", fail(ReasonBlank, "", "", "no provider is named: name an instance or a provider type in the session's model")
	}
	if in, ok := c.Instance(name); ok {
		return resolveInstance(in, live)
	}
	if live.has(name) {
		return name, nil
	}
	if !KnownType(name) {
		return "", fail(ReasonUnknown, name, "", "there is no provider %.64q: known are the instances %s and the types %s; a name is never guessed",
			name, named(ids(c.enabled())), named(builtIn))
	}
	return resolveType(name, c, live)
}

// resolveInstance is rule 2: an id that is configured wins over everything.
func resolveInstance(in Instance, live Live) (string, *Error) {
	switch {
	case !in.Enabled:
		return "", fail(ReasonDisabled, in.ID, in.ID, "provider instance %.64q is disabled: enable it in the configuration, or name another in the session's model", in.ID)
	case !live.has(in.ID):
		return "", fail(ReasonNotLive, in.ID, in.ID, "provider instance %.64q is configured and not live: see why it did not start, or name another in the session's model", in.ID)
	}
	return in.ID, nil
}

// resolveType is rules 5 to 7: the default instance if it has the type, else
// the first enabled one. Neither is passed over for a second.
func resolveType(name string, c Config, live Live) (string, *Error) {
	if in, ok := c.DefaultInstance(); ok && in.Type == name {
		switch {
		case !in.Enabled:
			return "", fail(ReasonDefaultDisabled, name, in.ID, "the default instance %.64q of type %s is disabled: enable it, make another the default, or name an instance", in.ID, name)
		case !live.has(in.ID):
			return "", fail(ReasonDefaultNotLive, name, in.ID, "the default instance %.64q of type %s is not live: see why it did not start, or name an instance", in.ID, name)
		}
		return in.ID, nil
	}
	for _, in := range c.enabled() {
		if in.Type != name {
			continue
		}
		if !live.has(in.ID) {
			return "", fail(ReasonFirstNotLive, name, in.ID, "%.64q, the first enabled instance of type %s, is not live: see why it did not start, or name an instance", in.ID, name)
		}
		return in.ID, nil
	}
	return "", fail(ReasonNoInstance, name, "", "no enabled instance has the provider type %s: configure one, or name an instance of another type", name)
}

// ProviderType is the protocol family behind a key: what its instance declares,
// else what the live registry says, else the key itself.
func ProviderType(key string, c Config, live Live) string {
	if in, ok := c.Instance(key); ok && in.Type != "" {
		return in.Type
	}
	if t := live[key]; t != "" {
		return t
	}
	return key
}
