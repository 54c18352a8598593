module callers

go 1.24

require golang.org/x/oauth2 v0.38.0
