/**
 * Whether a host name or address (as `URL.hostname` gives it, IPv6 in brackets or not) can only be this machine:
 * `localhost` and its subdomains (RFC 6761 section 6.3), 127.0.0.0/8 and ::1 (RFC 6890).
 */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  return name === 'localhost' || name.endsWith('.localhost') || name === '::1' || /^127(\.\d{1,3}){3}$/.test(name);
}

/** Whether a URL may be called without TLS: `https:`, or `http:` to this machine. */
export function isSecureUrl(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol !== 'http:' || isLoopbackHost(hostname);
}
