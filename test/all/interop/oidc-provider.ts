import { join } from 'node:path';
import { requirePackage } from '../setup/packages';
import { startScript } from '../setup/script';

/** A client credential at oidc-provider, which binds each client to one way of authentication. */
export interface ProviderClient {
  readonly client_id: string;
  readonly client_secret?: string;
  readonly scope: string;
  readonly token_endpoint_auth_method: 'client_secret_basic' | 'client_secret_post';
  /** Binds its tokens to the certificate of the token request (RFC 8705). */
  readonly tls_client_certificate_bound_access_tokens?: boolean;
}

/** oidc-provider in a process of its own. */
export interface OidcProvider {
  readonly issuer: string;
  readonly tokenEndpoint: string;
  /** What the client's next tokens carry as `generation`. A client that was never given one gets tokens without. */
  stamp(client: string, generation: number): Promise<void>;
  /** Signs with a new key from now on; the earlier ones stay in the key set, or leave it. */
  rotateKeys(to: { readonly algorithm: 'RS256' | 'ES256'; readonly keepOld: boolean }): Promise<void>;
  stop(): Promise<void>;
}

/** Starts an authorization server; the first of the audiences is the default one. */
export async function startOidcProvider(options: {
  readonly audiences: readonly string[];
  /** Those of them whose tokens are opaque. */
  readonly opaque: readonly string[];
  readonly clients: readonly ProviderClient[];
}): Promise<OidcProvider> {
  requirePackage('oidc-provider', 9);
  const script = await startScript<{ issuer: string }>(join(__dirname, 'oidc-provider-server.mjs'), options);
  const { issuer } = script.ready;
  return {
    issuer,
    tokenEndpoint: `${issuer}/token`,
    stamp: (client, generation) => script.ask({ stamp: { client, generation } }),
    rotateKeys: (to) => script.ask({ rotate: to }),
    stop: () => script.stop(),
  };
}
