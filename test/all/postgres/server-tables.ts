/** The clients of a server in PostgreSQL, as its own migrations create them: names and columns that triggers see. */
export interface ServerTable {
  readonly create: string;
  /** `$1` is the client id, as tokens have it. */
  readonly insert: string;
  /** What makes `insert` do nothing where the client exists. */
  readonly onConflict: string;
  readonly change: string;
  /** Writes the row without a change. */
  readonly touch: string;
  readonly remove: string;
  /** The number that tokens of the client get. */
  readonly number: string;
  /** The columns whose change discards tokens that are compared by `iat`; no other column does. */
  readonly matters: readonly string[];
}

/** Statements about one table whose rows have the client id in `id`. */
function table(
  name: string,
  id: string,
  columns: string,
  row: string,
  described: string,
  number: string,
  matters: string,
): ServerTable {
  const where = `WHERE ${id} = $1`;
  const [inserted = '', values = ''] = row.split(' = ');
  return {
    create: `CREATE TABLE ${name} (${columns})`,
    insert: `INSERT INTO ${name} (${id}, ${inserted}) VALUES ($1, ${values})`,
    onConflict: 'ON CONFLICT DO NOTHING',
    change: `UPDATE ${name} SET ${described} = ${described} || '+' ${where}`,
    touch: `UPDATE ${name} SET ${described} = ${described} ${where}`,
    remove: `DELETE FROM ${name} ${where}`,
    number: `SELECT ${number} AS number FROM ${name} ${where}`,
    matters: matters.split(/\s+/),
  };
}

const IDENTITY_SERVER = `
CREATE TABLE "Clients" ("Id" serial PRIMARY KEY, "ClientId" varchar(200) NOT NULL UNIQUE, "ClientName" varchar(200),
  "Description" varchar(1000), "Enabled" boolean NOT NULL, "Updated" timestamp);
CREATE TABLE "ClientClaims" ("Id" serial PRIMARY KEY, "Type" varchar(250) NOT NULL, "Value" varchar(250) NOT NULL,
  "ClientId" integer NOT NULL REFERENCES "Clients" ("Id") ON DELETE CASCADE);
CREATE TABLE "ClientSecrets" ("Id" serial PRIMARY KEY, "Description" varchar(2000), "Value" varchar(4000) NOT NULL, "Type" varchar(250),
  "ClientId" integer NOT NULL REFERENCES "Clients" ("Id") ON DELETE CASCADE);
CREATE TABLE "ClientScopes" ("Id" serial PRIMARY KEY, "Scope" varchar(200) NOT NULL,
  "ClientId" integer NOT NULL REFERENCES "Clients" ("Id") ON DELETE CASCADE);
CREATE TABLE "ClientGrantTypes" ("Id" serial PRIMARY KEY, "GrantType" varchar(250) NOT NULL,
  "ClientId" integer NOT NULL REFERENCES "Clients" ("Id") ON DELETE CASCADE)`;

/** By the name of the table, as a page writes it. */
export const SERVER_TABLES: Readonly<Record<string, ServerTable>> = {
  clients: table(
    'clients',
    'id',
    'id text PRIMARY KEY, description text, scopes text, secret_hash text, last_used timestamptz, generation bigint',
    `description = 'd'`,
    'description',
    'generation',
    'description scopes secret_hash',
  ),
  hydra_client: table(
    'hydra_client',
    'id',
    `id varchar(255), client_name text NOT NULL DEFAULT '', client_secret text NOT NULL DEFAULT '', scope text NOT NULL DEFAULT '',
     owner text NOT NULL DEFAULT '', audience jsonb NOT NULL DEFAULT '[]', grant_types jsonb NOT NULL DEFAULT '[]', redirect_uris jsonb NOT
     NULL DEFAULT '[]', jwks text NOT NULL DEFAULT '', token_endpoint_auth_method varchar(25) NOT NULL DEFAULT '', logo_uri text NOT NULL
     DEFAULT '', metadata jsonb, nid uuid NOT NULL DEFAULT gen_random_uuid(), updated_at timestamp, PRIMARY KEY (id)`,
    `client_name = 'd'`,
    'client_name',
    'NULL::bigint',
    'client_name client_secret scope audience grant_types owner metadata jwks token_endpoint_auth_method',
  ),
  oauth2_provider_application: table(
    'oauth2_provider_application',
    'client_id',
    `id bigserial PRIMARY KEY, client_id varchar(100) NOT NULL UNIQUE, redirect_uris text NOT NULL DEFAULT '', client_type varchar(32) NOT NULL
     DEFAULT 'confidential', authorization_grant_type varchar(44) NOT NULL DEFAULT 'client-credentials', client_secret varchar(255) NOT NULL
     DEFAULT '', name varchar(255) NOT NULL, user_id bigint, skip_authorization boolean NOT NULL DEFAULT false, created timestamptz, updated
     timestamptz, algorithm varchar(5) NOT NULL DEFAULT '', post_logout_redirect_uris text NOT NULL DEFAULT ''`,
    `name = 'd'`,
    'name',
    'NULL::bigint',
    'client_id client_secret name client_type authorization_grant_type user_id',
  ),
  '"oauthClient"': table(
    '"oauthClient"',
    '"clientId"',
    `id text PRIMARY KEY DEFAULT gen_random_uuid(), "clientId" text NOT NULL UNIQUE, "clientSecret" text, disabled boolean, scopes jsonb,
     "clientCredentialsScopes" jsonb, "grantTypes" jsonb, "tokenEndpointAuthMethod" text, jwks text, "redirectUris" jsonb, icon text, name text, "createdAt" timestamptz, "updatedAt" timestamptz, metadata jsonb`,
    `name = 'd'`,
    'name',
    'NULL::bigint',
    'clientId clientSecret disabled name metadata scopes clientCredentialsScopes grantTypes tokenEndpointAuthMethod jwks',
  ),
  oauth2_registered_client: table(
    'oauth2_registered_client',
    'client_id',
    `id varchar(100) PRIMARY KEY DEFAULT gen_random_uuid()::text, client_id varchar(100) NOT NULL UNIQUE, client_id_issued_at timestamp NOT NULL
     DEFAULT CURRENT_TIMESTAMP, client_secret varchar(200), client_secret_expires_at timestamp, client_name varchar(200) NOT NULL,
     client_authentication_methods varchar(1000) NOT NULL DEFAULT '', authorization_grant_types varchar(1000) NOT NULL DEFAULT '',
     redirect_uris varchar(1000), post_logout_redirect_uris varchar(1000), scopes varchar(1000) NOT NULL DEFAULT '', client_settings
     varchar(2000) NOT NULL DEFAULT '{"@class":"java.util.Collections$UnmodifiableMap"}', token_settings varchar(2000) NOT NULL DEFAULT '{}'`,
    `client_name = 'd'`,
    'client_name',
    `(client_settings::jsonb ->> 'generation')::bigint`,
    `client_id client_secret client_secret_expires_at client_name client_authentication_methods authorization_grant_types scopes
     client_settings token_settings`,
  ),
  '"OpenIddictApplications"': table(
    '"OpenIddictApplications"',
    '"ClientId"',
    `"Id" text PRIMARY KEY DEFAULT gen_random_uuid()::text, "ApplicationType" varchar(50), "ClientId" varchar(100) UNIQUE, "ClientSecret" text,
     "ClientType" varchar(50), "ConcurrencyToken" varchar(50), "ConsentType" varchar(50), "DisplayName" text, "DisplayNames" text,
     "JsonWebKeySet" text, "Permissions" text, "PostLogoutRedirectUris" text, "Properties" text, "RedirectUris" text, "Requirements" text,
     "Settings" text`,
    `"DisplayName" = 'd'`,
    '"DisplayName"',
    `("Properties"::jsonb ->> 'generation')::bigint`,
    'ClientId ClientSecret ClientType DisplayName DisplayNames JsonWebKeySet Permissions Properties Requirements Settings',
  ),
  '"Clients"': {
    ...table('"Clients"', '"ClientId"', '', `"Description", "Enabled" = 'd', true`, '"Description"', 'NULL', ''),
    create: IDENTITY_SERVER,
    number: `SELECT "Value"::bigint AS number FROM "ClientClaims" WHERE "Type" = 'generation'
      AND "ClientId" = (SELECT "Id" FROM "Clients" WHERE "ClientId" = $1)`,
  },
};
