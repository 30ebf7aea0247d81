//go:build !race

package config_test

const raced = false
