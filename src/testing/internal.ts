/*
 * The seam: what `@tillgate/cli` of the same version use and no public entry has, with the reason for each. No promise to
 * anybody else. test/repository/layers.test.ts counts it: the list gets shorter, never longer.
 */

// tillgate contract lists the classes of cases.
export { CASE_CLASSES } from './contract/options';
// tillgate contract prints what was sent, and what differed, for each requirement that is not met.
export { failuresIn } from './contract/subject';
// tillgate contract reads its options from a file.
export { parseYaml } from './openapi/document';
// tillgate dev calls an operation that its example client may call.
export { allOperations } from './openapi/document';
// tillgate dev takes scopes from any document.
export { loadDocument } from './openapi/document';
// The scopes of a document.
export { scopesOf } from './openapi/document';
