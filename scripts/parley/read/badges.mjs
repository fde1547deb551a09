/** Pictures that say nothing of what a page is about. */

/** Addresses of services that draw badges. */
const BADGE = new RegExp(
  `^(?:https?:)?//(?:${[
    '(?:[\\w-]+\\.)?shields\\.io/',
    '(?:flat\\.)?badgen\\.net/',
    'badges?\\.[\\w-]+\\.[\\w.-]+/',
    '(?:api\\.|www\\.)?(?:codecov\\.io|travis-ci\\.(?:org|com)|coveralls\\.io|circleci\\.com|packagequality\\.com|david-dm\\.org)/',
    '(?:ci\\.appveyor\\.com|(?:api\\.)?codeclimate\\.com|(?:api|app)\\.codacy\\.com|nodei\\.co|img\\.badgesize\\.io)/',
    'github\\.com/[^?#]+/(?:workflows|actions)/[^?#]*badge\\.svg',
    '(?:snyk\\.io/test|packagephobia\\.(?:com|now\\.sh)|goreportcard\\.com|pkg\\.go\\.dev|docs\\.rs|deps\\.rs)/[^?#]*badge',
    '(?:opencollective\\.com|readthedocs\\.org|data\\.jsdelivr\\.com|gitlab\\.com|sonarcloud\\.io)/[^?#]*badge',
    '(?:www\\.)?bestpractices\\.(?:dev|coreinfrastructure\\.org)/[^?#]*badge',
    'api\\.(?:netlify\\.com|scorecard\\.dev|securityscorecards\\.dev)/[^?#]*badge',
    '(?:api\\.netlify\\.com/api/v1|jsr\\.io)/badges/',
    'dev\\.azure\\.com/[^?#]*/_apis/build/status',
  ].join('|')})`,
  'i',
)

/** @param {string} address of a picture @returns {boolean} whether a service draws it that draws badges */
export const isBadgeAddress = (address) => BADGE.test(address.trim())

/** What a page or a project shows beside its name. */
const DECORATION = /\b(?:logo|icon|banner)\b/i

/** @param {string} alt @param {string} heading @returns {boolean} whether a picture in a heading adds nothing to it */
export const isDecoration = (alt, heading) =>
  DECORATION.test(alt) || heading.toLowerCase().includes(alt.trim().toLowerCase())
