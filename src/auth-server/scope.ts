/** `scope-token *( SP scope-token )` of RFC 6749 section 3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/;

/** The scopes of a `scope` value, each once and in their order; `undefined` when it does not keep to the grammar. */
export function parseScope(value: string): readonly string[] | undefined {
  return SCOPE.test(value) ? [...new Set(value.split(' '))] : undefined;
}
