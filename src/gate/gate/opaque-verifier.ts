import type { Clock } from '../core/clock';
import { ActivityPublisher } from '../core/channels';
import { clientUnit } from '../token/fair-queue';
import type { Caller } from '../token/fair-queue';
import { introspectedClaimsCheck, introspectionEndpoint, introspector } from '../token/introspection';
import { scopeReader } from '../token/scopes';
import type { IssuerContext } from './issuer';
import type { Auth } from './options';
import type { GateDependencies, IssuerSettings } from './read-options';
import { originOf, TrustedToken } from './trusted-token';
import type { Verifier } from './trusted-token';

type OpaqueSettings = NonNullable<IssuerSettings['opaque']>;

/** Responses are kept: 5,000 of them at most. Metadata is within this too. */
const MAX_RESPONSE_BYTES = 65_536;

/** Verifies opaque tokens by asking their issuer (RFC 7662). */
export class OpaqueVerifier implements Verifier {
  readonly #clock: Clock;
  readonly #context: IssuerContext;
  readonly #introspector: ReturnType<typeof introspector<TrustedToken>>;
  readonly #activity: ActivityPublisher<'introspection'>;

  constructor(
    context: IssuerContext,
    settings: IssuerSettings,
    opaque: OpaqueSettings,
    dependencies: GateDependencies,
  ) {
    const { issuer, authUrl, checkUrl, preset, scopes, generationClaim, clientIds } = settings;
    // Neither a floor nor the option needs the name of a client.
    const canLackClient = generationClaim === undefined && clientIds === undefined;
    const policy = {
      verifyClaims: introspectedClaimsCheck(settings, canLackClient, dependencies.clock),
      // RFC 7662 section 2.2: `scope`, also where the JWTs of this issuer have another claim.
      readScopes: scopeReader([...preset.scopeClaims, 'scope'], scopes),
      clientIdClaims: [...preset.clientIdClaims, 'client_id'],
    };
    const document = { issuer, authUrl, checkUrl, maxBytes: MAX_RESPONSE_BYTES };
    const ask = introspectionEndpoint({ ...dependencies, ...document, ...opaque });
    this.#clock = dependencies.clock;
    this.#context = context;
    this.#activity = new ActivityPublisher('introspection', issuer, () => ({ waiting: this.#introspector.waiting() }));
    this.#introspector = introspector({
      ...dependencies,
      issuer,
      cacheMs: opaque.cacheMs,
      askAbout: (token, signal) => this.#activity.during(() => ask(token, signal)),
      trust: (claims) => new TrustedToken(context, policy, claims),
      clientOf: ({ client_id: id }) => (typeof id === 'string' ? clientUnit(issuer, id) : undefined),
    });
    this.#activity.publish('opened');
  }

  known(token: string): Auth | undefined {
    return this.#introspector.get(token)?.known(this.#clock());
  }

  async verify(token: string, caller?: Caller): Promise<Auth> {
    return (await this.#introspector.introspect(token, caller)).accept();
  }

  /** An opaque token is not asked about again. */
  recheck(auth: Auth): boolean {
    const token = originOf(auth);
    if (!token || token.key || token.context !== this.#context) return false;
    token.recheck(auth, this.#clock());
    return true;
  }

  /** Ends the open calls. */
  close(): void {
    this.#introspector.close();
    this.#activity.publish('closed');
  }
}
