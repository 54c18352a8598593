import type { Dependencies } from '../core/options';

/** Dependencies of a source that is made from a URL; each source uses those that it needs. */
export interface SourceDependencies extends Pick<Dependencies, 'fetch' | 'clock' | 'schedule'> {
  /** Sent with every request to an `http(s):` source. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Accepts an `http:` source on another host than loopback. */
  readonly allowHttp?: boolean | undefined;
  /** Loads the package of a store's client. Default: Node's `require`. */
  readonly load?: ((name: string) => unknown) | undefined;
}
