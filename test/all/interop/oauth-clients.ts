import { join } from 'node:path';
import { requirePackage } from '../setup/packages';
import { startScript } from '../setup/script';

/** The clients, and how each of them can send its credentials. */
export const LIBRARIES = ['openid-client', 'oauth4webapi', 'simple-oauth2'] as const;
export const METHODS = ['basic', 'body'] as const;
export type Library = (typeof LIBRARIES)[number];
export type Method = (typeof METHODS)[number];
export const COMBINATIONS = LIBRARIES.flatMap((library) => METHODS.map((method) => [library, method] as const));

/** A token request; each library takes what it needs of it. */
export interface TokenRequest {
  readonly issuer: string;
  readonly tokenEndpoint: string;
  readonly clientId: string;
  readonly secret: string;
  readonly method: Method;
  readonly parameters: Readonly<Record<string, string>>;
}

export interface TokenResponse {
  readonly access_token: string;
  readonly token_type: string;
  readonly expires_in: number;
  readonly scope: string;
}

/** What a library told its user when a call failed. */
export interface Failure {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly status?: number;
  /** `error` and `error_description` of the response, if the library read them. */
  readonly error?: string;
  readonly description?: string;
  /** `WWW-Authenticate` as the library parsed it, and the body of the response, if the library threw for the challenge. */
  readonly challenges?: readonly { scheme: string; parameters: Readonly<Record<string, string>> }[];
  readonly body?: Readonly<Record<string, unknown>>;
}

/** The three libraries, in a process of their own. */
export interface OAuthClients {
  token(library: Library, request: TokenRequest): Promise<TokenResponse>;
  /** Any task of `clients/*.mjs`, which must succeed. */
  succeed<Result>(library: Library, task: string, parameters: object): Promise<Result>;
  /** The same where it must fail. */
  fail(library: Library, task: string, parameters: object): Promise<Failure>;
  stop(): Promise<void>;
}

/** Starts the libraries' process. */
export async function startOAuthClients(): Promise<OAuthClients> {
  requirePackage('openid-client', 6);
  requirePackage('oauth4webapi', 3);
  requirePackage('simple-oauth2', 5);
  const script = await startScript(join(__dirname, 'clients/main.mjs'));

  function ask(library: Library, task: string, parameters: object): Promise<{ result?: unknown; failure?: Failure }> {
    return script.ask({ library, task, with: parameters });
  }
  async function succeed<Result>(library: Library, task: string, parameters: object): Promise<Result> {
    const { result, failure } = await ask(library, task, parameters);
    if (failure) throw new Error(`${library} ${task}: ${JSON.stringify(failure)}`);
    return result as Result;
  }
  return {
    token: (library, request) => succeed(library, 'token', request),
    succeed,
    async fail(library, task, parameters) {
      const { result, failure } = await ask(library, task, parameters);
      if (!failure) throw new Error(`${library} ${task}: expected a failure, got ${JSON.stringify(result)}`);
      return failure;
    },
    stop: () => script.stop(),
  };
}
