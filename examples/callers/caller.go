// Package callers has one token for all calls, with golang.org/x/oauth2. After 401 invalid_token, only the token that was
// refused is replaced.
package callers

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// Transport sends the token to the host of API only: a redirect to another one gets none.
// Name AuthStyle in Config: else a refused token request is sent twice.
type Transport struct {
	Config *clientcredentials.Config
	API    *url.URL

	mutex       sync.Mutex
	current     *held
	failed      error
	failedUntil time.Time
}

type held struct {
	text        string
	born, until time.Time
	refusals    int // tokens in a row before it that were refused and never accepted, or one that was
	accepted    bool
}

// take returns the token for the next attempt: requested once for all, because the others wait for the lock. It returns
// the refused one itself if no other one is available.
func (t *Transport) take(refused *held) (*held, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	now, current, refusals := time.Now(), t.current, 0
	if current != nil && current != refused && now.Before(current.until) {
		return current, nil
	}
	if now.Before(t.failedUntil) {
		return nil, t.failed
	}
	if current != nil && current == refused {
		switch {
		case current.accepted:
			refusals = 1
		case current.refusals == 1: // where the API compares the time of issue, a token of the second of the change is refused too
			time.Sleep(time.Until(current.born.Add(time.Second)))
			refusals = 2
		case current.refusals == 2 && now.Before(current.born.Add(30*time.Second)): // two refused in a row
			return current, nil
		default:
			refusals = 2
		}
	}
	born := time.Now()
	token, err := t.Config.Token(context.Background())
	if err != nil {
		t.current, t.failed, t.failedUntil = nil, err, time.Now().Add(restAfter(err))
		return nil, err
	}
	lifetime := time.Minute
	if !token.Expiry.IsZero() {
		lifetime = token.Expiry.Sub(born)
	}
	until := born.Add(lifetime - min(lifetime/10, time.Minute))
	t.current = &held{text: token.AccessToken, born: born, until: until, refusals: refusals}
	return t.current, nil
}

// restAfter is Retry-After in seconds, at most a minute; else one second.
func restAfter(err error) time.Duration {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		if seconds, err := strconv.Atoi(refused.Response.Header.Get("Retry-After")); err == nil && seconds > 0 {
			return min(time.Duration(seconds)*time.Second, time.Minute)
		}
	}
	return time.Second
}

// RoundTrip implements http.RoundTripper. A request is sent again if it has no body, or GetBody, as http.NewRequest sets it.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != t.API.Scheme || request.URL.Host != t.API.Host {
		return http.DefaultTransport.RoundTrip(request)
	}
	held, err := t.take(nil)
	for attempt := 1; err == nil; attempt++ {
		sent := request.Clone(request.Context())
		if request.GetBody != nil {
			if sent.Body, err = request.GetBody(); err != nil {
				return nil, err
			}
		}
		sent.Header.Set("Authorization", "Bearer "+held.text)
		response, err := http.DefaultTransport.RoundTrip(sent)
		if err != nil {
			return nil, err
		}
		status := response.StatusCode
		if status != 401 && status != 429 && status < 500 {
			t.accept(held)
		}
		isRefused := strings.Contains(strings.Join(response.Header.Values("WWW-Authenticate"), ","), `error="invalid_token"`)
		if status != 401 || !isRefused || attempt == 3 || (request.Body != nil && request.GetBody == nil) {
			return response, nil
		}
		next, err := t.take(held)
		if err != nil || next == held {
			return orError(response, err)
		}
		response.Body.Close()
		held = next
	}
	return nil, err
}

func (t *Transport) accept(held *held) {
	t.mutex.Lock()
	held.accepted = true
	t.mutex.Unlock()
}

func orError(response *http.Response, err error) (*http.Response, error) {
	if err == nil {
		return response, nil
	}
	response.Body.Close()
	return nil, err
}
