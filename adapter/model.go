package adapter

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/sandboxrun/sandboxrun/isolation"
	"github.com/sandboxrun/sandboxrun/network"
	"github.com/sandboxrun/sandboxrun/network/model"
)

// ErrNoKey says that the model API would be called without a key.
var ErrNoKey = errors.New("no API key for the model: set ANTHROPIC_API_KEY, or api_key in the policy, or use a script")

// modelSource answers the agent's model requests: a route for the gateway, and what went wrong with a script.
type modelSource struct {
	route  *network.ModelRoute
	script *model.Server // nil: upstream
}

// newModel makes the source that the policy asks for. The real key goes into the route, which is outside; the sandbox
// has the placeholder.
func newModel(ctx context.Context, cfg *isolation.Config) (*modelSource, error) {
	m := cfg.WithDefaults().Model
	host, err := network.ParseHost(isolation.ModelHost)
	if err != nil {
		panic("BUG: model host: " + err.Error())
	}
	ca, err := network.NewCA(host)
	if err != nil {
		return nil, err
	}
	route := &network.ModelRoute{Host: host, Placeholder: isolation.ModelPlaceholder, CA: ca}
	switch m.Source {
	case isolation.Script:
		script, err := model.LoadScript(cfg.ModelPath())
		if err != nil {
			return nil, err
		}
		server := &model.Server{Script: script}
		route.Handler = server
		return &modelSource{route, server}, nil
	case isolation.Upstream:
		if route.Upstream, err = url.Parse(m.BaseURL); err != nil {
			return nil, fmt.Errorf("model.base_url: %w", err)
		}
		if route.Key, err = cfg.ResolveAPIKey(ctx, os.LookupEnv); err != nil {
			return nil, err
		}
		if route.Key.IsZero() {
			return nil, ErrNoKey
		}
		return &modelSource{route, nil}, nil
	default:
		return nil, fmt.Errorf("model.source = %q: not built yet", m.Source)
	}
}

// err is what the script itself has to complain about: it ran out, or the agent said something else than it expected.
func (m *modelSource) err() error {
	if m.script == nil {
		return nil
	}
	return m.script.Err()
}
