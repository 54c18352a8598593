import { fetchBytes } from '../../../src/gate/net/http';
import { connectionHint } from '../../../src/gate/net/unreachable';
import { messagesIn } from '../../support/messages';

const URL_ = 'https://login.test/keys';
const PRIVATE_CA =
  '; Node knows no CA of this certificate: set NODE_EXTRA_CA_CERTS to the PEM file of the private CA or development certificate';
const IN_A_CONTAINER =
  '; in a container this host is the container itself: set authUrl (TILLGATE_AUTH_URL) to the URL by which it reaches the server';
const SWITCH = 'is set, which Node follows with NODE_USE_ENV_PROXY=1 only';
const PROXY = { HTTPS_PROXY: 'http://user:secret@proxy.test:3128' };

/** A Node of a version; since 22.21 and 24.5 its HTTP client can follow proxy variables. */
function node(env: Readonly<Record<string, string>>, version = 'v26.0.0', flags = ['--use-env-proxy']) {
  return { env, version, allowedNodeEnvironmentFlags: new Set(flags) } as unknown as typeof process;
}

describe('what is said about a connection that failed', () => {
  it.each([
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  ])('names the variable for a private CA: %s', (code) => {
    expect(connectionHint(URL_, code, true, node({}))).toBe(PRIVATE_CA);
    expect(connectionHint('https://localhost:5001/keys', code, false, node({}))).toBe(PRIVATE_CA);
  });

  it.each(['http://localhost:8080/realms/shop', 'http://127.0.0.1:8080/', 'http://[::1]:8080/'])(
    'says what %s is in a container, where nothing listens there',
    (url) => {
      expect(connectionHint(url, 'ECONNREFUSED', true, node(PROXY))).toBe(IN_A_CONTAINER);
      expect(connectionHint(url, 'ETIMEDOUT', false, node({ http_proxy: 'x' }))).toBe('');
    },
  );

  it.each<[what: string, hint: string, where: ReturnType<typeof node>, url?: string]>([
    ['a variable that Node follows on request', `; HTTPS_PROXY ${SWITCH}`, node(PROXY)],
    ['one in lower case', `; https_proxy ${SWITCH}`, node({ https_proxy: 'http://proxy.test' })],
    ['one that is followed', '', node({ ...PROXY, NODE_USE_ENV_PROXY: '1' })],
    ['one of another scheme', '', node({ HTTP_PROXY: 'http://proxy.test' })],
    ['the one of http:', `; HTTP_PROXY ${SWITCH}`, node({ HTTP_PROXY: 'http://proxy.test' }), 'http://login.test/'],
    [
      'a Node without them',
      '; HTTPS_PROXY is set, and Node v20.20.0 follows no proxy variable: docs/operations.md, "Connections to the authorization server"',
      node({ ...PROXY, NODE_USE_ENV_PROXY: '1' }, 'v20.20.0', []),
    ],
    ['a Node whose fetch alone can', `; HTTPS_PROXY ${SWITCH}`, node(PROXY, 'v24.1.0', [])],
    ['a Node whose fetch alone does', '', node({ ...PROXY, NODE_USE_ENV_PROXY: '1' }, 'v24.1.0', [])],
    ['a host that needs none', '', node({ ...PROXY, NO_PROXY: 'localhost, .test' })],
    ['the host itself', '', node({ ...PROXY, no_proxy: 'login.test' })],
    ['hosts of a pattern', '', node({ ...PROXY, NO_PROXY: '*.test' })],
    ['any host', '', node({ ...PROXY, NO_PROXY: '*' })],
    ['another host', `; HTTPS_PROXY ${SWITCH}`, node({ ...PROXY, NO_PROXY: 'gin.test,,a.login.test' })],
    ['no variable', '', node({ HTTPS_PROXY: '' })],
  ])('names a proxy variable that is not followed, and never its value: %s', (_what, hint, where, url = URL_) => {
    expect(connectionHint(url, 'ENOTFOUND', false, where)).toBe(hint);
    expect(connectionHint(url, 'ECONNRESET', false, where)).toBe('');
    expect(connectionHint(url, 'ENOTFOUND', true, where)).toBe('');
  });

  const texts = messagesIn('Of a connection that fails');
  const failures: Readonly<Record<string, readonly [url: string, code: string]>> = {
    'localhost in a container': ['http://localhost:8080/keys', 'ECONNREFUSED'],
    'a private CA': ['https://login.test/keys', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
  };

  it('has a text for every case', () => {
    expect(Object.keys(texts)).toEqual(Object.keys(failures));
  });

  it.each(Object.entries(failures))('is part of the error of a request: %s', async (name, [url, code]) => {
    const refused = Object.assign(new TypeError('fetch failed'), { cause: { code } });
    const options = { signal: new AbortController().signal, fetch: () => Promise.reject(refused) };
    await expect(fetchBytes(url, options)).rejects.toMatchObject({ message: texts[name] });
  });
});
