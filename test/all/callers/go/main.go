package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"callers"
)

func main() {
	api, err := url.Parse(os.Getenv("BASE_URL"))
	if err != nil {
		panic(err)
	}
	config := &clientcredentials.Config{
		ClientID: os.Getenv("CLIENT_ID"), ClientSecret: os.Getenv("CLIENT_SECRET"), Scopes: []string{os.Getenv("SCOPE")},
		TokenURL: os.Getenv("AUTH_URL") + "/connect/token", AuthStyle: oauth2.AuthStyleInHeader,
	}
	client := &http.Client{Transport: &callers.Transport{Config: config, API: api}}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var count int
		var path string
		fmt.Sscan(lines.Text(), &count, &path)
		outcomes := make([]any, count)
		var group sync.WaitGroup
		for i := range outcomes {
			group.Add(1)
			go func() {
				defer group.Done()
				outcomes[i] = outcomeOf(client.Get(api.String() + path))
			}()
		}
		group.Wait()
		text, _ := json.Marshal(outcomes)
		fmt.Println(string(text))
	}
}

func outcomeOf(response *http.Response, err error) any {
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
	return response.StatusCode
}
