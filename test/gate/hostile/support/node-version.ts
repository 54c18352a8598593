/** Node's parser has become stricter from version to version. */
export const [NODE_MAJOR = 0] = process.versions.node.split('.').map(Number);
