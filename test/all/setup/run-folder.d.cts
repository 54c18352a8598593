/** Compiles `src` and the scripts of child processes into `.test-build`. */
export function compileSources(): void;
