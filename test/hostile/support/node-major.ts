/** Node's parser has become stricter from version to version. */
export const NODE_MAJOR = Number(process.versions.node.split('.')[0]);
