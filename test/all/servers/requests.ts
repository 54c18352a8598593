/** Gets a token by client credentials, with the secret in the header. */
export async function tokenFrom(
  endpoint: string,
  clientId: string,
  secret: string,
  parameters: Readonly<Record<string, string>>,
): Promise<string> {
  const credential = [clientId, secret].map((one) => new URLSearchParams([['', one]]).toString().slice(1)).join(':');
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(credential).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', ...parameters }),
  });
  const text = await response.text();
  const { access_token: token } = (response.ok ? JSON.parse(text) : {}) as { access_token?: string };
  if (token === undefined) throw new Error(`no token: ${response.status} ${text}`);
  return token;
}

export function postJson(url: string, body: object): Promise<unknown> {
  return sendJson('POST', url, body);
}

/** @throws Error with the response, if it is not 2xx */
export async function sendJson(method: string, url: string, body?: object): Promise<unknown> {
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text}`);
  return text === '' ? undefined : (JSON.parse(text) as unknown);
}
