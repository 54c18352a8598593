package login;

import java.util.List;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.core.io.ClassPathResource;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.init.ResourceDatabasePopulator;
import org.springframework.security.crypto.factory.PasswordEncoderFactories;
import org.springframework.security.oauth2.core.AuthorizationGrantType;
import org.springframework.security.oauth2.core.ClientAuthenticationMethod;
import org.springframework.security.oauth2.server.authorization.OAuth2TokenType;
import org.springframework.security.oauth2.server.authorization.client.JdbcRegisteredClientRepository;
import org.springframework.security.oauth2.server.authorization.client.RegisteredClient;
import org.springframework.security.oauth2.server.authorization.client.RegisteredClientRepository;
import org.springframework.security.oauth2.server.authorization.settings.AuthorizationServerSettings;
import org.springframework.security.oauth2.server.authorization.token.JwtEncodingContext;
import org.springframework.security.oauth2.server.authorization.token.OAuth2TokenCustomizer;

/** Spring Authorization Server on PostgreSQL, with two clients: the tokens of `as-made` are not customized. */
@SpringBootApplication
public class Login {
  public static void main(String[] args) {
    SpringApplication.run(Login.class, args);
  }

  @Bean
  AuthorizationServerSettings settings(@Value("${issuer}") String issuer) {
    return AuthorizationServerSettings.builder().issuer(issuer).build();
  }

  @Bean
  RegisteredClientRepository clients(JdbcTemplate database) {
    var schema = "org/springframework/security/oauth2/server/authorization/client/oauth2-registered-client-schema.sql";
    new ResourceDatabasePopulator(new ClassPathResource(schema)).execute(database.getDataSource());
    var clients = new JdbcRegisteredClientRepository(database);
    var encoder = PasswordEncoderFactories.createDelegatingPasswordEncoder();
    for (String id : List.of("till-9", "as-made")) {
      clients.save(RegisteredClient.withId(id)
          .clientId(id)
          .clientSecret(encoder.encode("secret-of-" + id))
          .clientAuthenticationMethod(ClientAuthenticationMethod.CLIENT_SECRET_BASIC)
          .authorizationGrantType(AuthorizationGrantType.CLIENT_CREDENTIALS)
          .scope("orders:read")
          .build());
    }
    return clients;
  }

  @Bean
  OAuth2TokenCustomizer<JwtEncodingContext> accessTokens() {
    return context -> {
      var client = context.getRegisteredClient();
      if (!OAuth2TokenType.ACCESS_TOKEN.equals(context.getTokenType()) || client.getClientId().equals("as-made")) return;
      context.getJwsHeader().type("at+jwt");
      context.getClaims().claim("client_id", client.getClientId()).audience(List.of("https://api.example.com"));
      String generation = client.getClientSettings().getSetting("generation");
      if (generation != null) context.getClaims().claim("generation", Long.valueOf(generation));
    };
  }
}
