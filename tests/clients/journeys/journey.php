<?php
// A customer's work with the client that openapi-generator makes for PHP; see test_openapi_generator.py.

declare(strict_types=1);

use SiteSearch\Api\AnalyticsApi;
use SiteSearch\Api\DocumentsApi;
use SiteSearch\Api\KeysApi;
use SiteSearch\Api\SearchApi;
use SiteSearch\Api\SitesApi;
use SiteSearch\ApiException;
use SiteSearch\Configuration;
use SiteSearch\Model\Bulk;
use SiteSearch\Model\Destroy;
use SiteSearch\Model\Document;
use SiteSearch\Model\Error;
use SiteSearch\Model\KeyCreate;
use SiteSearch\Model\SearchBody;
use SiteSearch\Model\SiteCreate;

require '/usr/share/php/GuzzleHttp/autoload.php';
spl_autoload_register(function (string $class): void {
    if (str_starts_with($class, 'SiteSearch\\')) {
        require __DIR__ . '/lib/' . str_replace('\\', '/', substr($class, strlen('SiteSearch\\'))) . '.php';
    }
});

[, $baseUrl, $privateToken] = $argv;

function configured(string $baseUrl, string $token): Configuration
{
    return (new Configuration())->setHost($baseUrl)->setAccessToken($token);
}

function check(bool $condition, mixed $what): void
{
    if (!$condition) {
        throw new RuntimeException(var_export($what, true));
    }
}

function refusal(callable $call): Error
{
    try {
        $call();
    } catch (ApiException $error) {
        return $error->getResponseObject();
    }
    throw new RuntimeException('it was not refused');
}

$server = configured($baseUrl, $privateToken);
$documents = new DocumentsApi(config: $server);
$sites = new SitesApi(config: $server);

$site = $sites->createSite(new SiteCreate(['name' => 'Museum', 'url' => 'https://museum.example/']))->getSite();
$made = (new KeysApi(config: $server))->createKey(
    $site->getId(),
    new KeyCreate(['name' => 'Search page', 'type' => KeyCreate::TYPE_SEARCH])
);
check($made->getKey()->getType() === 'search' && $made->getKey()->getExpiresAt() === null, $made);
$visitor = new SearchApi(config: configured($baseUrl, $made->getApiKey()));

$indexed = $documents->indexDocuments(new Bulk(['site_id' => $site->getId(), 'documents' => [
    new Document([
        'id' => 'hours', 'title' => 'Opening hours', 'content' => 'We open at nine.', 'url' => '/hours', 'author' => 'Ann',
    ]),
    new Document(['id' => 'news', 'title' => 'News', 'content' => 'New opening hours.', 'url' => '/news']),
]]));
check($indexed->getCreated() === 2, $indexed);

$found = $visitor->search(q: 'opning hours', filters: 'author = Ann', facets: 'author', highlight: true)->getResults();
check(count($found->getHits()) === 1 && $found->getHits()[0]->getId() === 'hours', $found);
check($found->getMatched() === 'corrected' && $found->getFacetDistribution()['author']['Ann'] === 1, $found);
$byBody = $visitor->searchByBody(new SearchBody(['q' => 'hours', 'sort' => ['title:asc']]))->getResults();
check($byBody->getHits()[0]->getId() === 'news', $byBody);

$analytics = (new AnalyticsApi(config: $server))->showAnalytics(period: '7d', site_id: $site->getId());
check(count($analytics->getSeries()) === 7, $analytics);
check($analytics->getPrevious()->getClickThroughRate() === null, $analytics);

$broken = refusal(fn () => $visitor->search(q: 'hours', filters: 'section visit'));
check($broken->getError() === 'invalid_filter' && $broken->getDetails()[0]->getPosition() === 8, $broken);

$destroy = new Destroy(['id' => 'hours']);
check($documents->deleteDocument(site_id: $site->getId(), destroy: $destroy)->getDeleted() === 1, $site);
$again = refusal(fn () => $documents->deleteDocument(site_id: $site->getId(), destroy: $destroy));
check($again->getError() === 'document_not_found', $again);
check($sites->deleteSite($site->getId())->getSuccess(), $site);
echo "done\n";
