import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { extractWWWAuthenticateParams } from '@modelcontextprotocol/sdk/client/auth.js';
import { ClientCredentialsProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import type { ClientCredentialsProviderOptions } from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';

/** Asks for the scopes of every challenge so far: the provider of the SDK asks for the same ones each time. */
class GrowingScopes extends ClientCredentialsProvider {
  readonly #scopes = new Set<string>();

  note(response: Response): void {
    for (const scope of extractWWWAuthenticateParams(response).scope?.split(' ') ?? []) this.#scopes.add(scope);
  }

  override prepareTokenRequest(): URLSearchParams {
    return super.prepareTokenRequest([...this.#scopes].join(' '));
  }
}

/**
 * Connects to an MCP server. The URL is enough: the SDK finds the token server from the first 401.
 *
 * @param credentials - `expectedIssuer`: the only token server that gets the secret
 * @param onResponse - called for every response, those with metadata and tokens included
 */
export async function connect(
  url: URL,
  credentials: ClientCredentialsProviderOptions & { expectedIssuer: string },
  onResponse: (method: string, url: URL, response: Response) => void,
): Promise<Client> {
  const authProvider = new GrowingScopes(credentials);
  const observed: FetchLike = async (target, init) => {
    const response = await fetch(target, init);
    authProvider.note(response);
    onResponse(init?.method ?? 'GET', new URL(target), response);
    return response;
  };
  const client = new Client({ name: 'agent', version: '1.0.0' });
  await client.connect(new StreamableHTTPClientTransport(url, { authProvider, fetch: observed }));
  return client;
}
