import { ClientCredentials } from 'simple-oauth2';

/** Gets a token by the client credentials grant. This library discovers nothing: it is told the token endpoint. */
export async function token({ tokenEndpoint, clientId, secret, method, parameters }) {
  const { origin, pathname } = new URL(tokenEndpoint);
  const client = new ClientCredentials({
    client: { id: clientId, secret },
    auth: { tokenHost: origin, tokenPath: pathname },
    options: { authorizationMethod: method === 'basic' ? 'header' : 'body' },
  });
  try {
    const { access_token, token_type, expires_in, scope } = (await client.getToken(parameters)).token;
    return { access_token, token_type, expires_in, scope };
  } catch (error) {
    throw plain(error);
  }
}

/** Status and body of the response, where the library keeps them: a Boom error. */
function plain({ message, output, data }) {
  const { error, error_description } = data?.payload ?? {};
  return Object.assign(new Error(message), { status: output?.statusCode, error, error_description });
}
