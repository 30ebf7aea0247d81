package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"culm/internal/engine"
)

// settings is the configuration file: flags by their names, and what has no flag.
type settings struct {
	values    map[string]any
	Providers []engine.Provider
}

// file is the shape of the YAML; names that are not listed are refused.
type file struct {
	NATS        *string           `yaml:"nats"`
	Listen      *string           `yaml:"listen"`
	Data        *string           `yaml:"data"`
	Sync        *string           `yaml:"sync"`
	Prefix      *string           `yaml:"prefix"`
	Lease       *string           `yaml:"lease"`
	Replicas    *int              `yaml:"replicas"`
	Layout      *string           `yaml:"layout"`
	NoRunner    *bool             `yaml:"no-runner"`
	NoProjector *bool             `yaml:"no-projector"`
	HTTP        *string           `yaml:"http"`
	Sessions    *int              `yaml:"sessions"`
	LogLevel    *string           `yaml:"log-level"`
	Providers   []engine.Provider `yaml:"providers"`
}

// findConfig reads the file that --config or CULM_CONFIG names, before the
// flags are parsed: a flag wins over the file.
func findConfig(args []string) (*settings, error) {
	path := os.Getenv("CULM_CONFIG")
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--config="); ok {
			path = v
		} else if a == "--config" && i+1 < len(args) {
			path = args[i+1]
		}
	}
	if path == "" {
		return &settings{}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	defer func() { _ = f.Close() }()
	s, err := readConfig(f)
	if err != nil {
		return nil, fmt.Errorf("--config %s: %w", path, err)
	}
	return s, nil
}

func readConfig(r io.Reader) (*settings, error) {
	var f file
	if err := yaml.NewDecoder(r, yaml.Strict()).Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s", yaml.FormatError(err, false, true))
	}
	s := &settings{values: map[string]any{}, Providers: f.Providers}
	put(s, "nats", f.NATS)
	put(s, "listen", f.Listen)
	put(s, "data", f.Data)
	put(s, "sync", f.Sync)
	put(s, "prefix", f.Prefix)
	put(s, "lease", f.Lease)
	put(s, "replicas", f.Replicas)
	put(s, "layout", f.Layout)
	put(s, "no-runner", f.NoRunner)
	put(s, "no-projector", f.NoProjector)
	put(s, "http", f.HTTP)
	put(s, "sessions", f.Sessions)
	put(s, "log-level", f.LogLevel)
	return s, nil
}

func put[T any](s *settings, name string, v *T) {
	if v != nil {
		s.values[name] = *v
	}
}

// Validate implements kong.Resolver.
func (s *settings) Validate(*kong.Application) error { return nil }

// Resolve implements kong.Resolver: the file's value of a flag, if it has one
// and the environment has none.
func (s *settings) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Envs {
		if _, ok := os.LookupEnv(env); ok {
			return nil, nil //nolint:nilnil // kong: no value here
		}
	}
	v, ok := s.values[flag.Name]
	if !ok {
		return nil, nil //nolint:nilnil // kong: no value here
	}
	return fmt.Sprint(v), nil
}
