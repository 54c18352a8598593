import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { readSettings } from '../../../src/settings/settings';

interface Envoy {
  readonly static_resources: {
    readonly listeners: readonly [{ filter_chains: readonly [{ filters: readonly [{ typed_config: Manager }] }] }];
    readonly clusters: readonly [
      {
        readonly health_checks: readonly [{ readonly http_health_check: { readonly path: string } }];
        readonly load_assignment: { readonly endpoints: readonly [{ readonly lb_endpoints: readonly Endpoint[] }] };
      },
    ];
  };
}

interface Endpoint {
  readonly endpoint: { readonly address: { readonly socket_address: { address: string; port_value: number } } };
}

interface Manager {
  readonly normalize_path: boolean;
  readonly merge_slashes: boolean;
  readonly path_with_escaped_slashes_action: string;
  readonly route_config: {
    readonly virtual_hosts: readonly [{ routes: readonly [{ match: { safe_regex: { regex: string } } }] }];
  };
}

const text = readFileSync(join(__dirname, '../../../deploy/envoy/envoy.yaml'), 'utf8');
const { listeners, clusters } = (load(text) as Envoy).static_resources;
const manager = listeners[0].filter_chains[0].filters[0].typed_config;

// Envoy is in no registry that tests can install from: the file is read, not run.
describe('deploy/envoy/envoy.yaml', () => {
  it('forwards paths as they are sent', () => {
    const { normalize_path, merge_slashes, path_with_escaped_slashes_action } = manager;
    expect({ normalize_path, merge_slashes, path_with_escaped_slashes_action }).toEqual({
      normalize_path: false,
      merge_slashes: false,
      path_with_escaped_slashes_action: 'KEEP_UNCHANGED',
    });
  });

  it('keeps every spelling of the health checks inside that Express serves', () => {
    const { regex } = manager.route_config.virtual_hosts[0].routes[0].match.safe_regex;
    expect(regex.startsWith('(?i)')).toBe(true);
    // Envoy compares the whole path with it.
    const inside = new RegExp(`^(?:${regex.slice('(?i)'.length)})$`, 'i');
    expect(['/livez', '/READYZ', '/livez/'].filter((path) => !inside.test(path))).toEqual([]);
    expect(['/v1/livez', '/livezz', '/v1/orders'].filter((path) => inside.test(path))).toEqual([]);
  });

  it('calls the ports of the APIs, and asks them whether they are ready', () => {
    const { port } = readSettings({});
    const addresses = clusters[0].load_assignment.endpoints[0].lb_endpoints.map(
      ({ endpoint }) => endpoint.address.socket_address,
    );
    expect(addresses).toEqual(['api-1', 'api-2'].map((address) => ({ address, port_value: port })));
    expect(clusters[0].health_checks.map(({ http_health_check: { path } }) => path)).toEqual(['/readyz']);
  });
});
