/** Compiles `src` and the scripts of child processes into `.test-build`. */
export function compileSources(): void;

/** Compiles `src` of a git revision with the scripts of the chaos run of today. @returns the folder */
export function compileRevision(revision: string): string;
