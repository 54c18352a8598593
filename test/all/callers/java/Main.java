import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.security.oauth2.client.registration.ClientRegistration;
import org.springframework.security.oauth2.core.AuthorizationGrantType;
import org.springframework.web.client.RestClient;

public final class Main {
    public static void main(String[] args) throws Exception {
        var env = System.getenv();
        var registration = ClientRegistration.withRegistrationId("api")
                .authorizationGrantType(AuthorizationGrantType.CLIENT_CREDENTIALS)
                .clientId(env.get("CLIENT_ID"))
                .clientSecret(env.get("CLIENT_SECRET"))
                .scope(env.get("SCOPE"))
                .tokenUri(env.get("AUTH_URL") + "/connect/token")
                .build();
        var api = URI.create(env.get("BASE_URL"));
        var client = RestClient.builder()
                .baseUrl(api)
                .requestFactory(new JdkClientHttpRequestFactory())
                .requestInterceptor(new TokenInterceptor(registration, api))
                .build();
        var pool = Executors.newFixedThreadPool(100);
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (var line = lines.readLine(); line != null; line = lines.readLine()) {
            var parts = line.split(" ");
            Callable<String> call = () -> outcomeOf(client, parts[1]);
            var calls = IntStream.range(0, Integer.parseInt(parts[0])).mapToObj(i -> call).toList();
            var outcomes = new java.util.ArrayList<String>();
            for (var outcome : pool.invokeAll(calls)) outcomes.add(outcome.get());
            System.out.println(outcomes.stream().collect(Collectors.joining(",", "[", "]")));
        }
        pool.shutdown();
    }

    private static String outcomeOf(RestClient client, String path) {
        try {
            return client.get().uri(path).exchange((request, response) -> String.valueOf(response.getStatusCode().value()));
        } catch (RuntimeException error) {
            return '"' + String.valueOf(error.getMessage()).replaceAll("[\"\\\\\\p{Cntrl}]", "'") + '"';
        }
    }
}
