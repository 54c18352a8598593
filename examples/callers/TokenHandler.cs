// One token for all calls, by a DelegatingHandler of .NET 10. After 401 invalid_token, only the token that was refused is replaced.
// Not run by `npm run callers`. The same handler without Retry-After was run on .NET 10: 100 calls after a change cost one
// token request.
using System.Net.Http.Headers;
using System.Net.Http.Json;
using System.Text;
using System.Text.Json;

namespace Callers;

/// <summary>
/// One instance for one client: set InnerHandler, or, under IHttpClientFactory, AddHttpMessageHandler(() => new TokenHandler(...))
/// .SetHandlerLifetime(Timeout.InfiniteTimeSpan), because a handler that is replaced forgets its token.
/// </summary>
public sealed class TokenHandler(HttpClient tokens, Uri endpoint, string id, string secret, string scope) : DelegatingHandler
{
    private sealed class Held
    {
        public required Task<(string Text, long Until)> Task;
        public long Born;
        public bool Replaces;
        public volatile bool Accepted;
        public long RestsUntil; // after a failure
    }

    private readonly Lock gate = new();
    private Held? current;

    protected override async Task<HttpResponseMessage> SendAsync(HttpRequestMessage request, CancellationToken stop)
    {
        if (request.Content is { } body) await body.LoadIntoBufferAsync(stop); // it may be sent twice
        var held = Take(null);
        var to = request.RequestUri;
        for (var again = false; ; again = true)
        {
            var (text, _) = await held.Task.WaitAsync(stop);
            request.Headers.Authorization = new AuthenticationHeaderValue("Bearer", text);
            var response = await base.SendAsync(request, stop);
            // 429 and 5xx say nothing about the token.
            if ((int)response.StatusCode is not (401 or 429 or >= 500)) held.Accepted = true;
            var isRefused = response.Headers.WwwAuthenticate.ToString().Contains("error=\"invalid_token\"");
            // Another URL: a redirect was followed, and its target gets no token.
            if (again || !isRefused || request.RequestUri != to) return response;
            var next = Take(held);
            if (next == held) return response;
            response.Dispose();
            held = next;
        }
    }

    /// <summary>The token for the next attempt: requested once for all, and only if the refused one is still the current one.</summary>
    private Held Take(Held? refused)
    {
        lock (gate)
        {
            if (current is { } held && IsKept(held, refused)) return held;
            var next = new Held { Task = null!, Replaces = refused != null, Born = Environment.TickCount64 };
            next.Task = Task.Run(() => Fetch(next));
            return current = next;
        }
    }

    private static bool IsKept(Held held, Held? refused)
    {
        var now = Environment.TickCount64;
        if (!held.Task.IsCompleted) return true;
        if (!held.Task.IsCompletedSuccessfully) return now < held.RestsUntil;
        if (held != refused) return now < held.Task.Result.Until;
        return held.Replaces && !held.Accepted && now < held.Born + 30_000; // two refused in a row
    }

    private async Task<(string, long)> Fetch(Held held)
    {
        held.RestsUntil = Environment.TickCount64 + 1_000;
        using var request = new HttpRequestMessage(HttpMethod.Post, endpoint)
        {
            Content = new FormUrlEncodedContent([new("grant_type", "client_credentials"), new("scope", scope)]),
        };
        var credential = $"{Uri.EscapeDataString(id)}:{Uri.EscapeDataString(secret)}";
        request.Headers.Authorization = new("Basic", Convert.ToBase64String(Encoding.ASCII.GetBytes(credential)));
        using var response = await tokens.SendAsync(request);
        var seconds = Math.Min(response.Headers.RetryAfter?.Delta?.TotalSeconds ?? 1, 60);
        held.RestsUntil = Environment.TickCount64 + (long)(seconds * 1_000);
        var json = await response.EnsureSuccessStatusCode().Content.ReadFromJsonAsync<JsonElement>();
        var lifetime = json.TryGetProperty("expires_in", out var given) && long.TryParse(given.ToString(), out var n) ? n : 60;
        var until = Environment.TickCount64 + 1_000 * Math.Max(lifetime - 10, lifetime / 2);
        return (json.GetProperty("access_token").GetString()!, until);
    }
}
