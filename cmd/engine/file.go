package main

import (
	"errors"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"culm/internal/config"
)

// settings is the configuration file as kong sees it: flags by their names.
type settings struct {
	path string // "" without a file
	*config.File
}

// findConfig reads the file that --config or CULM_CONFIG names, before the
// flags are parsed: a flag wins over the file.
func findConfig(args []string) (*settings, error) {
	path, given := os.Getenv("CULM_CONFIG"), false
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--config="); ok {
			path, given = v, true
		} else if a == "--config" && i+1 < len(args) {
			path, given = args[i+1], true
		}
	}
	if path == "" && given {
		return nil, errors.New("--config is empty")
	}
	if path == "" {
		return &settings{File: &config.File{}}, nil
	}
	f, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	return &settings{path, f}, nil
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
	v, ok := s.Settings[flag.Name]
	if !ok {
		return nil, nil //nolint:nilnil // kong: no value here
	}
	return v, nil
}
