import java.io.IOException;
import java.net.URI;
import java.time.Duration;
import java.util.concurrent.locks.ReentrantLock;
import org.springframework.http.HttpRequest;
import org.springframework.http.client.ClientHttpRequestExecution;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.http.client.ClientHttpResponse;
import org.springframework.http.converter.FormHttpMessageConverter;
import org.springframework.security.oauth2.client.endpoint.OAuth2ClientCredentialsGrantRequest;
import org.springframework.security.oauth2.client.endpoint.RestClientClientCredentialsTokenResponseClient;
import org.springframework.security.oauth2.client.http.OAuth2ErrorResponseErrorHandler;
import org.springframework.security.oauth2.client.registration.ClientRegistration;
import org.springframework.security.oauth2.core.http.converter.OAuth2AccessTokenResponseHttpMessageConverter;
import org.springframework.web.client.RestClient;

/**
 * One token for all calls of a RestClient, requested by Spring Security. After 401 invalid_token, only the token that was
 * refused is replaced. The request factory must not follow redirects: HttpClient does not, unless it is told to.
 */
public final class TokenInterceptor implements ClientHttpRequestInterceptor {
    private final RestClientClientCredentialsTokenResponseClient tokens = new RestClientClientCredentialsTokenResponseClient();
    private final ClientRegistration registration;
    private final URI api;
    private final ReentrantLock lock = new ReentrantLock();
    private Held current;
    private RuntimeException failure;
    private long restsUntil;
    private long retryAfterSeconds = 1;

    private static final class Held {
        String text;
        long born;
        long until;
        int refusals; // tokens in a row before it that were refused and never accepted, or one that was
        volatile boolean isAccepted;
    }

    public TokenInterceptor(ClientRegistration registration, URI api) {
        this.registration = registration;
        this.api = api;
        // The RestClient that Spring Security makes by itself, and Retry-After, which its exception does not have.
        tokens.setRestClient(RestClient.builder()
                .messageConverters(converters -> {
                    converters.clear();
                    converters.add(new FormHttpMessageConverter());
                    converters.add(new OAuth2AccessTokenResponseHttpMessageConverter());
                })
                .defaultStatusHandler(new OAuth2ErrorResponseErrorHandler())
                .requestInterceptor((request, body, execution) -> {
                    var response = execution.execute(request, body);
                    var seconds = response.getHeaders().getFirst("Retry-After");
                    if (seconds != null && seconds.matches("[1-9]\\d{0,8}")) retryAfterSeconds = Math.min(60, Long.parseLong(seconds));
                    return response;
                })
                .build());
    }

    @Override
    public ClientHttpResponse intercept(HttpRequest request, byte[] body, ClientHttpRequestExecution execution) throws IOException {
        if (!request.getURI().getScheme().equals(api.getScheme()) || !request.getURI().getAuthority().equals(api.getAuthority())) {
            return execution.execute(request, body);
        }
        var held = take(null);
        for (var attempt = 1; ; attempt++) {
            request.getHeaders().setBearerAuth(held.text);
            var response = execution.execute(request, body);
            var status = response.getStatusCode().value();
            if (status != 401 && status != 429 && status < 500) held.isAccepted = true;
            var challenges = String.join(",", response.getHeaders().getOrEmpty("WWW-Authenticate"));
            if (status != 401 || !challenges.contains("error=\"invalid_token\"") || attempt == 3) return response;
            var next = take(held);
            if (next == held) return response;
            response.close();
            held = next;
        }
    }

    /** The token for the next attempt, requested once for all; the refused one itself if no other one is available. */
    private Held take(Held refused) {
        lock.lock();
        try {
            var now = System.nanoTime();
            if (current != null && current != refused && now - current.until < 0) return current;
            if (failure != null && now - restsUntil < 0) throw failure;
            var refusals = 0;
            if (current != null && current == refused) {
                refusals = current.isAccepted ? 1 : 2;
                var age = Duration.ofNanos(now - current.born);
                // Two refused in a row.
                if (!current.isAccepted && current.refusals == 2 && age.toSeconds() < 30) return current;
                // Where the API compares the time of issue, a token of the second of the change is refused too.
                if (!current.isAccepted && current.refusals == 1) sleep(Duration.ofSeconds(1).minus(age));
            }
            current = request(refusals);
            return current;
        } finally {
            lock.unlock();
        }
    }

    private Held request(int refusals) {
        var held = new Held();
        held.refusals = refusals;
        held.born = System.nanoTime();
        retryAfterSeconds = 1;
        try {
            var token = tokens.getTokenResponse(new OAuth2ClientCredentialsGrantRequest(registration)).getAccessToken();
            held.text = token.getTokenValue();
            // Spring Security takes a second where the response has no expires_in.
            var lifetime = Duration.between(token.getIssuedAt(), token.getExpiresAt());
            var margin = lifetime.dividedBy(10).compareTo(Duration.ofMinutes(1)) < 0 ? lifetime.dividedBy(10) : Duration.ofMinutes(1);
            held.until = held.born + lifetime.minus(margin).toNanos();
            return held;
        } catch (RuntimeException error) {
            current = null;
            failure = error;
            restsUntil = System.nanoTime() + Duration.ofSeconds(retryAfterSeconds).toNanos();
            throw error;
        }
    }

    private static void sleep(Duration duration) {
        try {
            if (!duration.isNegative()) Thread.sleep(duration.toMillis() + 1);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
