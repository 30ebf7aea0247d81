package main

import (
	"context"
	"errors"
)

type demo struct{}

func (demo) Run(ctx context.Context, a *app) error { return errors.New("not built in yet") }
