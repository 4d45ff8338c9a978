// A customer's work with the client that openapi-generator makes for Java; see test_openapi_generator.py.

import com.example.sitesearch.ApiClient;
import com.example.sitesearch.ApiException;
import com.example.sitesearch.api.AnalyticsApi;
import com.example.sitesearch.api.DocumentsApi;
import com.example.sitesearch.api.KeysApi;
import com.example.sitesearch.api.SearchApi;
import com.example.sitesearch.api.SitesApi;
import com.example.sitesearch.model.Analytics;
import com.example.sitesearch.model.Bulk;
import com.example.sitesearch.model.BulkAnswer;
import com.example.sitesearch.model.Destroy;
import com.example.sitesearch.model.Document;
import com.example.sitesearch.model.KeyCreate;
import com.example.sitesearch.model.KeyTokenAnswer;
import com.example.sitesearch.model.SearchBody;
import com.example.sitesearch.model.SearchResults;
import com.example.sitesearch.model.Site;
import com.example.sitesearch.model.SiteCreate;
import java.net.URI;
import java.util.List;
import java.util.concurrent.Callable;

public class Journey {
    static void check(boolean holds, Object what) {
        if (!holds) {
            throw new IllegalStateException(String.valueOf(what));
        }
    }

    static ApiClient client(String baseUrl, String token) {
        ApiClient client = new ApiClient();
        client.updateBaseUri(baseUrl);
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + token));
        return client;
    }

    static com.example.sitesearch.model.Error refusal(ApiClient client, Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (ApiException refused) {
            return client.getObjectMapper().readValue(refused.getResponseBody(), com.example.sitesearch.model.Error.class);
        }
        throw new IllegalStateException("it was not refused");
    }

    public static void main(String[] arguments) throws Exception {
        ApiClient server = client(arguments[0], arguments[1]);
        DocumentsApi documents = new DocumentsApi(server);

        SiteCreate newSite = new SiteCreate().name("Museum").url(URI.create("https://museum.example/"));
        Site site = new SitesApi(server).createSite(newSite).getSite();
        KeyCreate newKey = new KeyCreate().name("Search page").type(KeyCreate.TypeEnum.SEARCH);
        KeyTokenAnswer made = new KeysApi(server).createKey(site.getId(), newKey);
        check(made.getKey().getExpiresAt() == null, made);
        ApiClient page = client(arguments[0], made.getApiKey());
        SearchApi visitor = new SearchApi(page);

        Document hours = new Document().id("hours").title("Opening hours").content("We open at nine.").url("/hours");
        hours.putAdditionalProperty("section", "visit");
        Document news = new Document().id("news").title("News").content("New opening hours.").url("/news");
        Bulk bulk = new Bulk().siteId(site.getId()).documents(List.of(hours, news));
        BulkAnswer indexed = documents.indexDocuments(bulk, null, null, null);
        check(indexed.getCreated() == 2, indexed);

        SearchResults found = visitor.search(
            "opning hours", null, null, null, null, "section = visit", null, "section", null, true, null, null, null, null).getResults();
        check(found.getHits().size() == 1 && found.getHits().get(0).getId().equals("hours"), found);
        check(found.getHits().get(0).getAdditionalProperty("section").equals("visit"), found);
        check(found.getFacetDistribution().get("section").get("visit") == 1, found);
        SearchBody body = new SearchBody().q("hours").facets(List.of("section"));
        check(visitor.searchByBody(body).getResults().getHits().size() == 2, body);

        Analytics analytics = new AnalyticsApi(server).showAnalytics("7d", site.getId(), null, null, null, null);
        check(analytics.getSeries().size() == 7 && analytics.getPrevious().getClickThroughRate() == null, analytics);

        var broken = refusal(page, () -> visitor.search(
            "hours", null, null, null, null, "section visit", null, null, null, null, null, null, null, null));
        check(broken.getError().equals("invalid_filter") && broken.getDetails().get(0).getPosition() == 8, broken);

        Destroy destroy = new Destroy().id("hours");
        check(documents.deleteDocument(site.getId(), null, destroy).getDeleted() == 1, site);
        var again = refusal(server, () -> documents.deleteDocument(site.getId(), null, destroy));
        check(again.getError().equals("document_not_found"), again);
        check(new SitesApi(server).deleteSite(site.getId(), null, null).getSuccess(), site);
        System.out.println("done");
    }
}
