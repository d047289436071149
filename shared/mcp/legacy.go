package mcp

import "errors"

// The methods of the 2025 era that a server may add. They act on a session, which this package does not have: a product that stands behind
// several replicas serves none of them.
const (
	methodSetLevel    = "logging/setLevel"
	methodSubscribe   = "resources/subscribe"
	methodUnsubscribe = "resources/unsubscribe"
)

func checkLegacy(d Deps) error {
	for name, serve := range d.Legacy {
		switch name {
		case methodSetLevel:
		case methodSubscribe, methodUnsubscribe:
			if d.Resources == nil {
				return errors.New("mcp: Legacy: " + name + " without Resources")
			}
		default:
			return errors.New("mcp: Legacy: " + name + " can't be added")
		}
		if serve == nil {
			return errors.New("mcp: Legacy: " + name + " is nil")
		}
	}
	return nil
}

func legacy(serve LegacyMethod) func(*Server, *exchange) *reply {
	return func(s *Server, x *exchange) *reply {
		err := serve(x.ctx, &LegacyRequest{Caller: x.caller, Version: x.version, Params: x.frame.params})
		switch {
		case errors.Is(err, ErrUnknown):
			return badParams("Invalid params: unknown name or URI")
		case err != nil:
			return s.handlerFailure(x, "", err)
		}
		x.open()
		x.out = append(x.out, "}}"...)
		return nil
	}
}
