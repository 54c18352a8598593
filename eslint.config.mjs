import js from '@eslint/js';
import tseslint from 'typescript-eslint';

/** Globals of Node that scripts use. */
const NODE = ['process', 'console', 'URL', 'Request', 'fetch', 'Buffer', 'setTimeout', 'clearTimeout', 'performance'];

const BROWSER = ['setInterval', 'document', 'fetch', 'matchMedia', 'URL', 'EventSource', 'navigator', 'setTimeout'];

const RESTRICTED = [
  { selector: 'TSEnumDeclaration', message: 'Use a union type: the house has no enums.' },
  { selector: 'ExportDefaultDeclaration', message: 'Named exports only.' },
];

/** Forms that keep the formatter from one member, or one statement, a line. */
const JOINED_LINES = [
  {
    selector: 'ObjectExpression > SpreadElement[argument.type="ObjectExpression"]',
    message: 'Write the members plainly.',
  },
  {
    selector: 'ExpressionStatement > AssignmentExpression[left.type="ArrayPattern"][right.type="ArrayExpression"]',
    message: 'Write one assignment for each.',
  },
];

export default tseslint.config(
  {
    ignores: [
      '**/dist/',
      'coverage/',
      'docs-api/',
      '.api-report/',
      '**/node_modules/',
      '.packages/',
      '.tillgate/',
      '.test-build/',
      'test/all/package/consumers/',
    ],
  },
  js.configs.recommended,
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      'no-restricted-syntax': ['error', ...RESTRICTED],
      eqeqeq: 'error',
    },
  },
  {
    // A rejection that nothing handles ends the process: what nothing waits for goes through notify() of core/callbacks.
    files: ['src/gate/**/*.ts'],
    rules: { '@typescript-eslint/no-floating-promises': ['error', { ignoreVoid: false }] },
  },
  {
    // A function fits on a screen; comments and blank lines count too.
    files: ['src/{app,cli,client,gate,stores,testing}/**/*', 'scripts/**/*', 'bench/**/*'],
    rules: {
      'max-lines-per-function': ['error', { max: 60 }],
      'no-restricted-syntax': ['error', ...RESTRICTED, ...JOINED_LINES],
    },
  },
  {
    // Examples are projects of their own, whose packages are not installed here.
    files: ['examples/**/*'],
    ...tseslint.configs.disableTypeChecked,
    rules: {
      ...tseslint.configs.disableTypeChecked.rules,
      '@typescript-eslint/no-require-imports': 'off',
      '@typescript-eslint/explicit-module-boundary-types': 'off',
      'no-restricted-syntax': 'off',
      'no-undef': 'off',
      'max-lines-per-function': ['error', { max: 60 }],
    },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      // Response bodies are untyped on purpose: the assertions are their types.
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
  {
    files: ['**/jest.config.ts', 'jest.*.config.ts', '**/*.config.mjs', 'test/setup/{runner,failed-rooms}.mjs'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  {
    // Scripts that browsers load as they are.
    files: ['src/**/static/*.js'],
    ...tseslint.configs.disableTypeChecked,
    languageOptions: {
      ...tseslint.configs.disableTypeChecked.languageOptions,
      sourceType: 'module',
      globals: Object.fromEntries(BROWSER.map((name) => [name, 'readonly'])),
    },
    rules: { ...tseslint.configs.disableTypeChecked.rules, '@typescript-eslint/explicit-module-boundary-types': 'off' },
  },
  {
    files: ['**/*.mjs', '**/*.cjs'],
    ...tseslint.configs.disableTypeChecked,
    languageOptions: {
      ...tseslint.configs.disableTypeChecked.languageOptions,
      globals: Object.fromEntries(NODE.map((name) => [name, 'readonly'])),
    },
    // Plain JavaScript has no types to write down.
    rules: { ...tseslint.configs.disableTypeChecked.rules, '@typescript-eslint/explicit-module-boundary-types': 'off' },
  },
  {
    // Jest loads its transformer with require().
    files: ['**/*.cjs'],
    languageOptions: {
      globals: { require: 'readonly', module: 'writable', __dirname: 'readonly', __filename: 'readonly' },
    },
    rules: { '@typescript-eslint/no-require-imports': 'off' },
  },
);
