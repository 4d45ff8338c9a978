// A customer's work with the client that openapi-generator makes for Go; see test_openapi_generator.py.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"example.com/museum/sitesearch"
)

func check(holds bool, what any) {
	if !holds {
		panic(fmt.Sprintf("%+v", what))
	}
}

func must[T any](value T, _ any, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func refusal(err error) sitesearch.Error {
	var failure *sitesearch.GenericOpenAPIError
	check(errors.As(err, &failure), err)
	problem, known := failure.Model().(sitesearch.Error)
	check(known, failure.Model())
	return problem
}

func main() {
	configuration := sitesearch.NewConfiguration()
	configuration.Servers = sitesearch.ServerConfigurations{{URL: os.Args[1]}}
	client := sitesearch.NewAPIClient(configuration)
	server := context.WithValue(context.Background(), sitesearch.ContextAccessToken, os.Args[2])

	newSite := *sitesearch.NewSiteCreate("Museum", "https://museum.example/")
	site := must(client.SitesAPI.CreateSite(server).SiteCreate(newSite).Execute()).Site
	newKey := sitesearch.NewKeyCreate("Search page")
	newKey.SetType("search")
	made := must(client.KeysAPI.CreateKey(server, site.Id).KeyCreate(*newKey).Execute())
	check(made.Key.Type == "search" && made.Key.ExpiresAt.Get() == nil, made)
	visitor := context.WithValue(context.Background(), sitesearch.ContextAccessToken, made.ApiKey)

	hours := *sitesearch.NewDocument("hours", "Opening hours", "We open at nine.", "/hours")
	hours.AdditionalProperties = map[string]any{"section": "visit"}
	news := *sitesearch.NewDocument("news", "News", "New opening hours.", "/news")
	bulk := sitesearch.NewBulk([]sitesearch.Document{hours, news})
	bulk.SetSiteId(site.Id)
	indexed := must(client.DocumentsAPI.IndexDocuments(server).Bulk(*bulk).Execute())
	check(indexed.Created == 2, indexed)

	search := client.SearchAPI.Search(visitor).Q("opning hours").Filters("section = visit").Facets("section").Highlight(true)
	found := must(search.Execute()).Results
	check(len(found.Hits) == 1 && found.Hits[0].Id == "hours", found)
	check(found.Hits[0].AdditionalProperties["section"] == "visit", found)
	check(found.Matched == "corrected" && found.FacetDistribution["section"]["visit"] == 1, found)
	body := sitesearch.NewSearchBody("hours")
	facets := []string{"section"}
	body.SetFacets(sitesearch.Names{ArrayOfString: &facets})
	byBody := must(client.SearchAPI.SearchByBody(visitor).SearchBody(*body).Execute()).Results
	check(len(byBody.Hits) == 2, byBody)

	analytics := must(client.AnalyticsAPI.ShowAnalytics(server).Period("7d").SiteId(site.Id).Execute())
	check(len(analytics.Series) == 7 && analytics.Previous.ClickThroughRate.Get() == nil, analytics)

	_, _, err := client.SearchAPI.Search(visitor).Q("hours").Filters("section visit").Execute()
	broken := refusal(err)
	check(broken.Error == "invalid_filter" && *broken.Details[0].Position == 8, broken)

	destroy := sitesearch.NewDestroy()
	destroy.SetId("hours")
	deletion := client.DocumentsAPI.DeleteDocument(server).SiteId(site.Id).Destroy(*destroy)
	check(must(deletion.Execute()).Deleted == 1, site)
	_, _, err = deletion.Execute()
	check(refusal(err).Error == "document_not_found", err)
	check(must(client.SitesAPI.DeleteSite(server, site.Id).Execute()).Success, site)
	fmt.Println("done")
}
