import type fc from 'fast-check';
import type { Got } from './dispatch';
import { discardTokens, floorOf, isActive, nextGeneration, expectedResponse } from './model';
import type { ClientId, Model, ModelClient, ModelToken } from './model';
import type { System } from './system';

export type Command = fc.AsyncCommand<Model, System>;

/** Number of the newest tokens that are tried after every step. */
const TOKENS_TRIED = 8;

/** How long after a read that found nothing new an API reads again at the latest. */
const ROUND_MS = 250;

/** A command after which the API that follows the source must agree with the model about every token. */
export function command(name: string, run: (model: Model, system: System) => Promise<void>): Command {
  return {
    check: () => true,
    toString: () => name,
    async run(model, system) {
      await run(model, system);
      await system.pass(ROUND_MS);
      model.nowMs += ROUND_MS;
      for (const token of model.tokens.slice(-TOKENS_TRIED)) {
        const [scope = ''] = token.scopes;
        const expected = expectedResponse(model, token, scope, floorOf(model, token.clientId));
        expect(`${name}: ${await system.call('following', scope, token.text)}`).toBe(`${name}: ${expected}`);
      }
    },
  };
}

export function register(id: ClientId, description: string, scopes: readonly string[]): Command {
  return command(`register(${id}, ${JSON.stringify(description)}, ${scopes.join('+')})`, async (model, system) => {
    const body = { client_id: id, description, scope: scopes.join(' ') };
    const response = await system.ask({ method: 'POST', path: '/clients', body });
    if (model.clients.has(id)) return expect(response.status).toBe(409);
    expect(response.status).toBe(201);
    const generation = nextGeneration(model, id);
    const secret = String(response.body['client_secret']);
    model.highest.set(id, generation);
    model.clients.set(id, { description, scopes, disabled: false, generation, secrets: [secret] });
    model.issuedSecrets.get(id)?.push(secret);
    expectClient(model, id, response);
  });
}

export function describeClient(id: ClientId, description: string): Command {
  return change(`describe(${id}, ${JSON.stringify(description)})`, id, async (client, model, system) => {
    const response = await system.ask({ method: 'PATCH', path: `/clients/${id}`, body: { description } });
    const changed = client !== undefined && client.description !== description;
    if (client && changed) {
      client.description = description;
      discardTokens(model, id);
    }
    // A new token is created with the change, and only then.
    const created = response.body['token'] as { access_token: string } | undefined;
    expect(created !== undefined).toBe(changed && !client.disabled);
    if (created) keepToken(model, created.access_token);
    return response;
  });
}

export function changeScopes(id: ClientId, scopes: readonly string[]): Command {
  return change(`scopes(${id}, ${scopes.join('+')})`, id, async (client, model, system) => {
    if (client) {
      const taken = client.scopes.some((scope) => !scopes.includes(scope));
      client.scopes = scopes;
      if (taken) discardTokens(model, id);
    }
    return system.ask({ method: 'PATCH', path: `/clients/${id}`, body: { scope: scopes.join(' ') } });
  });
}

export function setDisabled(id: ClientId, disabled: boolean): Command {
  return change(`disabled(${id}, ${disabled})`, id, async (client, model, system) => {
    if (client) {
      if (disabled && !client.disabled) discardTokens(model, id);
      client.disabled = disabled;
    }
    return system.ask({ method: 'PATCH', path: `/clients/${id}`, body: { disabled } });
  });
}

export function rotate(id: ClientId, keepTokens: boolean, revokePrevious: boolean): Command {
  return change(`rotate(${id}, keep=${keepTokens}, revoke=${revokePrevious})`, id, async (client, model, system) => {
    const body = { keep_tokens: keepTokens, revoke_previous: revokePrevious };
    const response = await system.ask({ method: 'POST', path: `/clients/${id}/secrets`, body });
    if (client) {
      const secret = String(response.body['client_secret']);
      client.secrets = [secret, ...(revokePrevious ? [] : client.secrets.slice(0, 1))];
      model.issuedSecrets.get(id)?.push(secret);
      if (!keepTokens) discardTokens(model, id);
    }
    return response;
  });
}

export function revoke(id: ClientId): Command {
  return change(`revoke(${id})`, id, async (client, model, system) => {
    if (client) discardTokens(model, id);
    return system.ask({ method: 'POST', path: `/clients/${id}/revoke` });
  });
}

export function remove(id: ClientId): Command {
  return command(`remove(${id})`, async (model, system) => {
    const { status } = await system.ask({ method: 'DELETE', path: `/clients/${id}` });
    expect(status).toBe(model.clients.has(id) ? 204 : 404);
    if (!model.clients.has(id)) return;
    discardTokens(model, id);
    model.clients.delete(id);
  });
}

/** A command that changes one client; the response is the client. */
function change(
  name: string,
  id: ClientId,
  run: (client: ModelClient | undefined, model: Model, system: System) => Promise<Got>,
): Command {
  return command(name, async (model, system) => {
    const client = model.clients.get(id);
    const response = await run(client, model, system);
    if (!client) return expect(response.status).toBe(404);
    expect([200, 201]).toContain(response.status);
    expectClient(model, id, response);
  });
}

function expectClient({ clients }: Model, id: ClientId, { body }: Got): void {
  const { description, scopes, disabled, generation } = clients.get(id) as ModelClient;
  const { description: text, scope, disabled: off, generation: number } = body;
  const got = { description: text, scopes: new Set(String(scope).split(' ')), disabled: off, generation: number };
  expect(got).toEqual({ description, scopes: new Set(scopes), disabled, generation });
}

/** Records a token, which must be of the current generation. */
export function keepToken(model: Model, text: string): ModelToken {
  const payload = Buffer.from(text.split('.')[1] ?? '', 'base64url').toString();
  const claims = JSON.parse(payload) as { client_id: ClientId; generation: number; scope: string; exp: number };
  const { client_id: clientId, generation, scope, exp } = claims;
  const token = { text, clientId, generation, scopes: scope.split(' '), expiresAtMs: exp * 1000 };
  const client = model.clients.get(clientId);
  expect(generation).toBe(client?.generation);
  expect(client?.scopes).toEqual(expect.arrayContaining(token.scopes));
  model.tokens.push(token);
  expect(isActive(model, token)).toBe(true);
  return token;
}
