// Package config reads the configuration file of the engine: its settings,
// which have the names of the flags, and what decisions rest on: providers,
// defaults of the roles, permissions, gold (docs/configuration.md).
//
// The file is read strictly. A key that is not known, a value of the wrong
// kind, a list that is too long: each is an *Error that names file, line and
// key, and a file with one error is not used at all. Anchors, aliases and tags
// of YAML are refused: what stands in the file is what it says.
//
// Secrets do not belong in the file. A provider names the environment variable
// that holds its key; a value that looks like a key or a password is refused
// wherever it stands, and is repeated neither in the error nor in the digest.
package config
