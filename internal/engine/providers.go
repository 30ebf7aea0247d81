package engine

import (
	"bytes"
	"context"
	"fmt"

	"culm/aggregate/routing"
	"culm/examples"
	"culm/internal/config"
	"culm/provider"
	"culm/provider/recorded"
	"culm/provider/transcript"
	"culm/tool"
	toolrecorded "culm/tool/recorded"
)

// SampleProvider is the provider of an engine that was configured none.
const SampleProvider = "sample"

// instances are the live providers and the tools that belong to them.
type instances struct {
	registry provider.Registry
	tools    recordings
	first    string // serves sessions that name no provider
	// elsewhere are the enabled instances that this process has no client for:
	// their sessions wait for another runner.
	elsewhere []string
}

// Serves says whether an engine has a client for providers of the type.
func Serves(providerType string) bool { return providerType == routing.TypeRecorded }

// openProviders reads what the configuration lists; without a list it is the
// sample that ships with the engine.
func openProviders(list []config.Provider, live map[string]provider.Provider) (*instances, error) {
	in := &instances{tools: recordings{}}
	for id, p := range live {
		if err := in.registry.Add(id, p); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 && len(live) == 0 {
		r, err := transcript.Read(bytes.NewReader(examples.ThreeDrafts), transcript.Limits{})
		if err != nil {
			return nil, fmt.Errorf("sample recording: %w", err)
		}
		return in, in.add(config.Provider{ID: SampleProvider}, r)
	}
	for _, p := range list {
		if !p.Enabled {
			continue
		}
		if !Serves(p.Type) {
			in.elsewhere = append(in.elsewhere, p.ID)
			continue
		}
		r, err := transcript.Open(p.File, transcript.Limits{})
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", p.ID, err)
		}
		if err := in.add(p, r); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func (in *instances) add(p config.Provider, r *transcript.Recording) error {
	if in.first == "" || p.Default {
		in.first = p.ID
	}
	in.tools[p.ID] = toolrecorded.New(r, toolrecorded.Options{})
	return in.registry.Add(p.ID, recorded.New(r, recorded.Options{Pace: p.Pace}))
}

// recordings are the tools of several recordings, by provider id: a call
// belongs to the recording of the provider that asked for it.
type recordings map[string]*toolrecorded.Tools

// Describe goes by name and arguments; tools that only ask become questions.
func (recordings) Describe(c tool.Call) tool.Access { return tool.Describe(c.Name, c.Arguments) }

// Execute answers from the recording that holds the call.
func (rs recordings) Execute(ctx context.Context, c tool.Call, output func(string)) tool.Result {
	if t, ok := rs[c.Provider]; ok {
		return t.Execute(ctx, c, output)
	}
	for _, t := range rs {
		if t.Holds(c) {
			return t.Execute(ctx, c, output)
		}
	}
	return tool.Failed("not_recorded", fmt.Sprintf("no recording holds a call of %s with these arguments", c.Name))
}

// liveTools are the tools of providers that the program brings along; all other
// calls belong to recordings.
type liveTools struct {
	recordings
	live  map[string]provider.Provider
	tools tool.Tools
}

// Describe implements tool.Tools.
func (l liveTools) Describe(c tool.Call) tool.Access {
	if l.live[c.Provider] != nil {
		return l.tools.Describe(c)
	}
	return l.recordings.Describe(c)
}

// Execute implements tool.Tools.
func (l liveTools) Execute(ctx context.Context, c tool.Call, output func(string)) tool.Result {
	if l.live[c.Provider] != nil {
		return l.tools.Execute(ctx, c, output)
	}
	return l.recordings.Execute(ctx, c, output)
}
