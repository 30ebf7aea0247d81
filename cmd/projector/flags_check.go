package main

import (
	"fmt"

	"culm/internal/config"
)

// check judges the flags of all commands; its errors wrap errUsage.
func (c *cli) check() error {
	if p := config.NATSProblem(c.NATS); p != "" { // not repeated: it may hold a password
		return fmt.Errorf("%w: --nats %s", errUsage, p)
	}
	if c.DB == "" {
		return fmt.Errorf("%w: --db is empty", errUsage)
	}
	if p := config.SettingProblem("prefix", c.Prefix); p != "" {
		return fmt.Errorf("%w: --prefix %q %s", errUsage, c.Prefix, p)
	}
	return nil
}

// check judges the flags of the command.
func (r *runCommand) check() error {
	if p := config.HTTPProblem(r.HTTP); p != "" {
		return fmt.Errorf("%w: --http %q %s", errUsage, r.HTTP, p)
	}
	if r.HTTPActor == "" {
		return nil
	}
	if p := config.SettingProblem("http-actor", r.HTTPActor); p != "" {
		return fmt.Errorf("%w: --http-actor %q %s", errUsage, r.HTTPActor, p)
	}
	return nil
}

// check judges the flags of the command.
func (k *checkCommand) check() error {
	if k.Limit < 0 {
		return fmt.Errorf("%w: --limit is %d; 0 prints all differences", errUsage, k.Limit)
	}
	return nil
}
