import { createServer } from 'node:http';
import { betterAuth } from 'better-auth';
import { getMigrations } from 'better-auth/db/migration';
import { toNodeHandler } from 'better-auth/node';
import { jwt } from 'better-auth/plugins';
import { oauthProvider } from '@better-auth/oauth-provider';
import { Pool } from 'pg';
import { replyToParent } from './reply-to-parent.mjs';

// Better Auth on PostgreSQL. Its first argument: { database, audience, scope, port }.
const { database, audience, scope, port } = JSON.parse(process.argv[2]);
const origin = `http://127.0.0.1:${port}`;
const auth = betterAuth({
  baseURL: origin,
  secret: 'only for tests, and long enough for them',
  database: new Pool({ connectionString: database }),
  emailAndPassword: { enabled: true },
  plugins: [
    jwt(),
    oauthProvider({
      loginPage: '/login',
      consentPage: '/consent',
      scopes: ['openid', scope],
      clientPrivileges: ({ user }) => user.email === 'operator@example.com',
    }),
  ],
});
await (await getMigrations(auth.options)).runMigrations();

const { headers: signedIn } = await auth.api.signUpEmail({
  body: { name: 'Operator', email: 'operator@example.com', password: 'only for tests' },
  returnHeaders: true,
});
const headers = new globalThis.Headers({
  cookie: signedIn
    .getSetCookie()
    .map((one) => one.split(';')[0])
    .join('; '),
});
await auth.api.adminCreateOAuthResource({ headers, body: { identifier: audience } });

const CHANGES = {
  async create() {
    const client = await auth.api.adminCreateOAuthClient({
      headers,
      body: {
        client_name: 'Till 9',
        grant_types: ['client_credentials'],
        response_types: [],
        client_credentials_scopes: [scope],
      },
    });
    const link = { identifier: encodeURIComponent(audience), client_id: client.client_id };
    await auth.api.adminLinkClientResource({ headers, params: link });
    return client;
  },
  rename: (client_id) =>
    auth.api.adminUpdateOAuthClient({ headers, body: { client_id, update: { client_name: 'Till 9, moved' } } }),
  rotate: (client_id) => auth.api.rotateClientSecret({ headers, body: { client_id } }),
  delete: (client_id) => auth.api.deleteOAuthClient({ headers, body: { client_id } }),
};

createServer(toNodeHandler(auth)).listen(port, '127.0.0.1', () =>
  replyToParent({ issuer: `${origin}/api/auth` }, ({ change, id }) => CHANGES[change](id).catch(explained)),
);

/** Errors of Better Auth have no message. */
function explained(error) {
  throw new Error(`${error.status} ${JSON.stringify(error.body)}`, { cause: error });
}
